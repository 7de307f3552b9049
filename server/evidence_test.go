package server

import (
	"maps"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store/blame"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// rounds runs the next waiting tasks on a host, n of them.
func (f *farm) rounds(t *testing.T, host int, verdicts ...verdict) {
	t.Helper()
	for _, v := range verdicts {
		h := f.hosts[host]
		if h.claim(t); len(h.held) != 1 {
			t.Fatalf("%s holds %d tasks, want 1", h.node, len(h.held))
		}
		h.end(t, v)
	}
}

func of(program string) func(*task.Definition) {
	return func(s *task.Definition) { storetest.Set(s, "program", program, "max_fails", "9") }
}

// What is counted of a program on a node: a task's first failure is fresh, and a
// success of anything ends the run of all programs there.
func TestEvidence(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineOn, 2, 1)
	s, _ := judging(t, sp, config.QuarantineOn)
	const odd = "3:p" // looks like the end of a list of programs
	check := func(program string, want blame.Evidence) {
		t.Helper()
		got, err := sp.Store.Evidence(t.Context(), "p", odd)
		if err != nil || !maps.Equal(got[program], want) {
			t.Errorf("%s: %v, %v; want %v", program, got[program], err, want)
		}
	}
	openMany(t, sp, 1, of(odd))
	f.rounds(t, 0, bad)
	openMany(t, sp, 1, of("p"))
	f.rounds(t, 0, bad)
	pass(t, s)
	check(odd, blame.Evidence{"n0": {Bad: 1, Run: 1, Fresh: 1}})
	check("p", blame.Evidence{"n0": {Bad: 1, Run: 1, Fresh: 1}})
	if n := f.record(t, "n0"); n.Run != 2 || len(n.Programs) != 2 || n.Programs[0] != odd || n.Programs[1] != "p" {
		t.Errorf("n0: %+v", n)
	}
	f.rounds(t, 1, bad, bad) // both tasks have failed before
	pass(t, s)
	check("p", blame.Evidence{"n0": {Bad: 1, Run: 1, Fresh: 1}, "n1": {Bad: 1, Run: 1}})
	checkFields(t, sp, 2, map[string]string{"failed_nodes": "n0,n1"})
	f.rounds(t, 0, good)
	check("p", blame.Evidence{"n0": {Bad: 1}, "n1": {Bad: 1, Run: 1}})
	f.rounds(t, 0, bad)
	check(odd, blame.Evidence{"n0": {Good: 1, Bad: 1}, "n1": {Bad: 1, Run: 1}})
	check("p", blame.Evidence{"n0": {Bad: 2, Run: 1}, "n1": {Bad: 1, Run: 1}})
	if n := f.record(t, "n0"); n.Run != 1 || len(n.Programs) != 1 {
		t.Errorf("n0 after a success: %+v", n)
	}
}

// A failure is charged once two other nodes have failed the same task, however
// many tasks of the program others pass.
func TestOpinions(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineOn, 4, 1)
	s, _ := judging(t, sp, config.QuarantineOn)
	openMany(t, sp, 5)
	for range 5 {
		f.rounds(t, 3, good)
	}
	pass(t, s)
	id := openMany(t, sp, 1)[0]
	for i, want := range []map[string]string{
		{"state": "open", "faults": "1", "fails": "0"},
		{"state": "open", "faults": "2", "fails": "0"},
		{"state": "failed", "faults": "2", "fails": "1", "failed_nodes": "n0,n1,n2"},
	} {
		f.rounds(t, i, bad)
		pass(t, s)
		checkFields(t, sp, id, want)
	}
}

// A program that only a node in good order runs is to blame itself: the node is
// forgiven, and not kept waiting as a suspect.
func TestProgramOfOneNode(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineOn, 2, 1)
	s, l := judging(t, sp, config.QuarantineOn)
	openMany(t, sp, 1)
	f.rounds(t, 0, good)
	openMany(t, sp, 20, of("own"))
	for range 12 {
		f.rounds(t, 0, bad)
		pass(t, s)
	}
	if n := f.record(t, "n0"); !n.Quarantined.IsZero() || !n.NextTrial.IsZero() || times([]*logs{l}, "n0 is") != 0 {
		t.Errorf("n0 is not forgiven: %+v\n%s", n, l)
	}
}

// A verdict from an old reading changes nothing; of two from the same reading
// one counts, and the same one sent again is recognised.
func TestVerdictOfAnOldReading(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	f := newFleet(t, sp, config.QuarantineOn, 2, 1)
	openMany(t, sp, 9)
	judge := func(n fleet.Suspect, since statemachine.Time, want bool) {
		t.Helper()
		if done, err := sp.Store.Judge(t.Context(), fleet.Verdict{Node: n, Quarantined: since, Reason: "a test"}); err != nil || done != want {
			t.Errorf("judged %+v: %v, %v; want %v", n, done, err, want)
		}
	}
	f.rounds(t, 0, bad, bad, bad)
	old := f.record(t, "n0")
	f.rounds(t, 0, good, bad, bad, bad) // the same run, but another one
	judge(old, at(1), false)
	now := f.record(t, "n0")
	judge(now, at(2), true)
	judge(now, at(3), false)
	judge(now, at(2), true)
	if n := f.record(t, "n0"); !n.Quarantined.Equal(task.Moment(at(2))) || n.Run != 3 || n.Reason != "a test" {
		t.Errorf("n0: %+v", n)
	}
}

// Nodes that are quarantined, and workers that are gone, do nobody's work.
func TestAlive(t *testing.T) {
	t.Parallel()
	f := &facts{live: map[string]bool{"a": true, "b": true, "c": true}, nodes: make([]fleet.Suspect, 2)}
	f.nodes[0].Name, f.nodes[1].Name = "b", "d"
	f.nodes[0].Quarantined = time.Unix(1, 0)
	for name, want := range map[string]int{"a": 2, "b": 3, "c": 2, "d": 3} {
		if n := f.alive(name); n != want {
			t.Errorf("beside %s: %d, want %d", name, n, want)
		}
	}
}
