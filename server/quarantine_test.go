package server

import (
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store/blame"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A node that fails everything, and so is first in line for the next task, takes
// at most 10 of 1,000, and no task pays for it. Two servers judge, and both are
// replaced again and again: nothing that counts is in their heads.
func TestBadNodeTakesFewTasks(t *testing.T) {
	t.Parallel()
	for _, slots := range []int{1, 4, 6} {
		t.Run(text(slots)+" slots", func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			f := newFleet(t, sp, config.QuarantineOn, 4, slots)
			openMany(t, sp, 1000)
			var said []*logs
			for f.counts(t)[statemachine.Open] > 0 {
				a, la := judging(t, sp, config.QuarantineOn)
				b, lb := judging(t, sp, config.QuarantineOn)
				said = append(said, la, lb)
				for range 5 {
					f.step(t, a, b)
				}
			}
			counts, n0 := f.counts(t), f.hosts[0]
			t.Logf("%s took %d of 1,000 tasks in %v s", n0.node, n0.took, f.now)
			if n0.took > 10 || n0.took < blame.MinRun {
				t.Errorf("the bad node took %d tasks", n0.took)
			}
			if counts[statemachine.Succeeded] != 1000 {
				t.Errorf("counts %v, want 1,000 succeeded", counts)
			}
			if n := f.record(t, "n0"); n.Quarantined.IsZero() {
				t.Errorf("n0 is not quarantined: %+v", n)
			}
			if n := times(said, "node n0 is quarantined"); n != 1 {
				t.Errorf("it was announced %d times", n)
			}
		})
	}
}

func times(said []*logs, what string) (n int) {
	for _, l := range said {
		n += strings.Count(l.String(), what)
	}
	return n
}

// A program that fails everywhere sets no node aside, ends failed, and does not
// stop what else runs there.
func TestBadProgramSetsNoNodeAside(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineOn, 4, 2)
	f.outcome = func(_ string, task *tasks.Claimed) verdict {
		if task.Spec.Program == "wrong" {
			return bad
		}
		return good
	}
	openMany(t, sp, 60, func(s *task.Definition) { storetest.Set(s, "program", "wrong") })
	openMany(t, sp, 60)
	s, l := judging(t, sp, config.QuarantineOn)
	f.finish(t, 300, s)
	if counts := f.counts(t); counts[statemachine.Failed] != 60 || counts[statemachine.Succeeded] != 60 {
		t.Errorf("counts %v after %v s, want 60 failed and 60 succeeded", counts, f.now)
	}
	if n := times([]*logs{l}, "quarantined"); n != 0 {
		t.Errorf("a node was quarantined\n%s", l)
	}
	t.Logf("over in %v s", f.now)
}

// warn says once what on would do, and does nothing.
func TestWarnOnlyAnnounces(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineWarn, 4, 2)
	openMany(t, sp, 200)
	s, l := judging(t, sp, config.QuarantineWarn)
	f.finish(t, 100, s)
	took := int64(f.hosts[0].took)
	if counts := f.counts(t); took < 40 || counts[statemachine.Failed] != took {
		t.Errorf("n0 took %d tasks, counts %v", took, counts)
	}
	if n := f.record(t, "n0"); !n.Quarantined.IsZero() || !n.NextTrial.IsZero() || n.Run != int(took) {
		t.Errorf("n0 was touched: %+v", n)
	}
	for _, want := range []string{"node n0 would be quarantined", `"level":"WARN","msg":"node n0 `, `"node":"n0","programs":["p"]`, "on other nodes"} {
		if n := times([]*logs{l}, want); n != 1 {
			t.Errorf("%d times: %s\n%s", n, want, l)
		}
	}
}

// off counts nothing and says nothing.
func TestQuarantineOff(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineOff, 4, 2)
	openMany(t, sp, 100)
	s, l := judging(t, sp, config.QuarantineOff)
	f.finish(t, 100, s)
	names, err := sp.Store.Suspects(t.Context())
	if n := f.record(t, "n0"); err != nil || len(names) != 0 || n.Run != 0 || times([]*logs{l}, "n0") != 0 {
		t.Errorf("suspects %v, %v, n0 %+v\n%s", names, err, n, l)
	}
}

// What was quarantined is released where quarantine is switched off.
func TestSwitchingOffReleases(t *testing.T) {
	t.Parallel()
	for _, mode := range modes()[:2] {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			f := newFleet(t, sp, config.QuarantineOn, 3, 2)
			openMany(t, sp, 100)
			on, _ := judging(t, sp, config.QuarantineOn)
			f.quarantine(t, on)
			s, l := judging(t, sp, mode)
			pass(t, s)
			if n := f.record(t, "n0"); !n.Quarantined.IsZero() || n.Reason != "" {
				t.Errorf("still quarantined: %+v", n)
			}
			if n := times([]*logs{l}, "node n0 is out of quarantine: quarantine is "+mode); n != 1 {
				t.Errorf("said %d times\n%s", n, l)
			}
		})
	}
}

// A single node is never quarantined: nobody could do its work.
func TestSingleNodeIsForgiven(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineOn, 1, 2)
	openMany(t, sp, 50)
	s, l := judging(t, sp, config.QuarantineOn)
	f.finish(t, 60, s)
	if counts := f.counts(t); counts[statemachine.Failed] != 50 {
		t.Errorf("counts %v\n%s", counts, l)
	}
}

// Two servers that run judge the same node: one has its way and says so.
func TestTwoServersJudge(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineOn, 4, 2)
	sp.Raw.HDel(t.Context(), sp.Key("meta"), "test_clock")
	said := []*logs{
		start(t, sp, fast, quarantine(config.QuarantineOn)),
		start(t, sp, fast, quarantine(config.QuarantineOn), func(o *options) { o.Name = "other" }),
	}
	openMany(t, sp, 300)
	wait.Eventually(t, 20*time.Second, func() bool {
		for _, h := range f.hosts {
			h.claim(t)
		}
		for _, h := range f.hosts {
			f.work(t, h)
		}
		return f.counts(t)[statemachine.Succeeded] == 300
	}, "the work is not done: %v, n0 %+v", f.counts(t), f.record(t, "n0"))
	if took := f.hosts[0].took; took > 10 {
		t.Errorf("n0 took %d tasks", took)
	}
	wait.Eventually(t, 5*time.Second, func() bool { return !f.record(t, "n0").Quarantined.IsZero() }, "n0 is not quarantined")
	wait.Eventually(t, 5*time.Second, func() bool { return times(said, "node n0 is quarantined") == 1 }, "it is not announced once")
}
