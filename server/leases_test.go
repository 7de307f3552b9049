package server

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A worker falls silent: its tasks are open again, in the next round, soon
// after its lease, whatever the length of a round of the server. Those of a
// worker that lives stay.
func TestLostWorker(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, l := launch(t, sp, leased, func(o *options) { o.RoundDuration = time.Hour })
	awaitSteady(t, s)
	tick := patient(s)
	ids := openMany(t, sp, 3)
	lives := register(t, sp.Store, "lives", 1)
	dead := register(t, sp.Store, "dead", 2)
	dead.renew(t)
	silent := redisNow(t, sp.Store)
	wait.Eventually(t, 10*time.Second, func() bool {
		lives.renew(t)
		tick()
		return sp.Task(t, ids[1]).State == statemachine.Open && sp.Task(t, ids[2]).State == statemachine.Open
	}, "the tasks of a dead worker are not taken back\n%s", l)
	for _, id := range ids[1:] {
		checkState(t, sp, id, statemachine.Open)
		checkFields(t, sp, id, map[string]string{"losses": "1", "round": "1", "0:running": "*", "1:open": "*", "1:running": "-"})
		checkLog(t, sp, id, "open -> running", "running -> open")
		back, end := opened(t, sp, id, 1), silent.Add(timing.FromStd(lease))
		if back < end.Add(-50*statemachine.Millisecond) {
			t.Errorf("task %d was taken back %s s before the end of the lease", id, end.Sub(back).Text())
		}
		wait.Within(t, "from the end of the lease to the next round", time.UnixMicro(int64(end)), time.UnixMicro(int64(back)), 500*time.Millisecond)
	}
	lives.renew(t)
	checkState(t, sp, ids[0], statemachine.Running)
	checkFields(t, sp, ids[0], map[string]string{"losses": "-", "round": "0"})
	said := regexp.MustCompile(`worker dead \(node-a, host-a, 7\) is lost: silent for \d+\.\d s; taking back 2 tasks`)
	if n := len(said.FindAllString(l.String(), -1)); n != 1 {
		t.Errorf("said %d times: %s\n%s", n, said, l)
	}
	if _, err := sp.Store.Renew(t.Context(), dead.session, fleet.Heartbeat{}); err == nil {
		t.Error("a lost worker may renew its lease")
	}
	if out := sp.Report(t, &dead.tasks[0], "late", ""); out.Result != statemachine.Refused {
		t.Errorf("late report: %+v, want refused", out)
	}
}

// A worker that held nothing is lost as well, and said so.
func TestLostIdleWorker(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, l := newServer(t, sp, leased)
	sp.SetClock(t, at(0))
	register(t, sp.Store, "idle", 0)
	sp.SetClock(t, at(1.5))
	steadied(t, s)
	pass(t, s)
	pass(t, s)
	if n := strings.Count(l.String(), "worker idle (node-a, host-a, 7) is lost: silent for 1.5 s; taking back 0 tasks"); n != 1 {
		t.Errorf("said %d times:\n%s", n, l)
	}
}

// Beyond max_losses the task is orphaned.
func TestLostBeyondLimit(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp, leased)
	sp.SetClock(t, at(0))
	ids := sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "max_losses", "1") }))
	for i, want := range []statemachine.State{statemachine.Open, statemachine.Orphaned} {
		register(t, sp.Store, "w", 1)
		sp.SetClock(t, at(float64(i)*10+5))
		steadied(t, s)
		pass(t, s)
		checkState(t, sp, ids[0], want)
	}
	checkFields(t, sp, ids[0], map[string]string{"losses": "2", "round": "1", "1:orphaned": "*", "2:open": "-"})
}

// A lease that ends this very moment is not over yet.
func TestLeaseIsStrict(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp, leased)
	sp.SetClock(t, at(0))
	ids := openMany(t, sp, 1)
	register(t, sp.Store, "w", 1)
	for _, c := range []struct {
		at   float64
		want statemachine.State
	}{{1, statemachine.Running}, {1.001, statemachine.Open}} {
		sp.SetClock(t, at(c.at))
		steadied(t, s)
		pass(t, s)
		checkState(t, sp, ids[0], c.want)
	}
}

// The end of the next lease is a reason for a pass, like a deadline.
func TestLeaseTimer(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp, leased)
	sp.SetClock(t, at(0))
	register(t, sp.Store, "w", 0)
	sp.SetClock(t, at(0.9))
	steadied(t, s)
	_, next, err := s.pass(t.Context())
	if err != nil || next != 100*time.Millisecond {
		t.Errorf("the next pass is in %v, %v", next, err)
	}
}

// A server that has just started says nothing about workers.
func TestNoVerdictAfterStart(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, l := newServer(t, sp, leased)
	sp.SetClock(t, at(0))
	ids := openMany(t, sp, 1)
	w := register(t, sp.Store, "w", 1)
	sp.SetClock(t, at(100))
	pass(t, s)
	checkState(t, sp, ids[0], statemachine.Running)
	if !strings.Contains(l.String(), "no verdict on workers for 1s: this server has just started") {
		t.Errorf("not said:\n%s", l)
	}
	w.renew(t)
	steadied(t, s)
	pass(t, s)
	checkState(t, sp, ids[0], statemachine.Running)
}

// A worker with 1,000 tasks, ten workers with 100, and twenty with none, in one pass.
func TestManyHeldTasks(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, l := newServer(t, sp, leased)
	sp.SetClock(t, at(0))
	openMany(t, sp, 2000)
	register(t, sp.Store, "many", 1000)
	for i := range 30 {
		register(t, sp.Store, "some-"+string(rune('A'+i)), 100*max(0, min(1, 10-i)))
	}
	sp.SetClock(t, at(2))
	steadied(t, s)
	if n := pass(t, s); n != 2000 {
		t.Errorf("took %d tasks back in one pass, want 2000", n)
	}
	counts, err := sp.Store.Count(t.Context())
	if err != nil || counts[statemachine.Open] != 2000 {
		t.Errorf("counts %v, %v", counts, err)
	}
	checkFields(t, sp, 1000, map[string]string{"losses": "1", "round": "1"})
	if n := strings.Count(l.String(), "is lost"); n != 31 || !strings.Contains(l.String(), "taking back 1000 tasks") {
		t.Errorf("%d workers are said to be lost, want 31", n)
	}
	if n := sp.Raw.ZCard(t.Context(), sp.Key("lease")).Val(); n != 0 {
		t.Errorf("%d workers are still on the list", n)
	}
}

// A worker whose keys were damaged by hand does not keep the others waiting.
func TestLostDamagedWorker(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, l := newServer(t, sp, leased)
	sp.SetClock(t, at(0))
	ids := openMany(t, sp, 1)
	register(t, sp.Store, "broken", 0)
	register(t, sp.Store, "w", 1)
	sp.Raw.Del(t.Context(), sp.Key("worker:broken"))
	sp.Raw.Set(t.Context(), sp.Key("worker:broken"), "no hash", 0)
	sp.SetClock(t, at(5))
	steadied(t, s)
	for range 3 {
		pass(t, s)
	}
	checkState(t, sp, ids[0], statemachine.Open)
	if n := strings.Count(l.String(), "could not take back the tasks of a lost worker"); n != 1 {
		t.Errorf("the damage is said %d times:\n%s", n, l)
	}
}

// Lost workers whose tasks cannot be moved, as many as one look returns and more,
// do not keep the server busy; nor does it forget them, or the others.
func TestLostStuckWorkers(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp, leased)
	sp.SetClock(t, at(0))
	ids := openMany(t, sp, 18)
	for i := range ids {
		register(t, sp.Store, "w-"+string(rune('A'+i)), 1)
		sp.Raw.HSet(t.Context(), sp.Key(fmt.Sprint("task:", ids[i])), "fails", "many")
	}
	sp.SetClock(t, at(5))
	steadied(t, s)
	if moved, next, err := s.pass(t.Context()); moved != 0 || err != nil || next != 100*time.Millisecond {
		t.Errorf("moved %d, the next pass is in %v, %v, want 100ms", moved, next, err)
	}
	for _, id := range ids {
		sp.Raw.HSet(t.Context(), sp.Key(fmt.Sprint("task:", id)), "fails", "0")
	}
	if n := pass(t, s); n != len(ids) {
		t.Errorf("took %d tasks back once they were sound, want %d", n, len(ids))
	}
}

// The lease is published for the workers, at the start and whenever it is gone.
func TestLeaseIsPublished(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	launch(t, sp, leased, setting(t, "worker_timeout=2"))
	published := func() bool {
		d, err := sp.Store.Lease(context.WithoutCancel(t.Context()))
		return err == nil && d == 2*statemachine.Second
	}
	wait.Eventually(t, 5*time.Second, published, "the lease is not published")
	sp.Raw.HDel(t.Context(), sp.Key("meta"), "worker_timeout")
	wait.Eventually(t, 5*time.Second, published, "the lease is not published again")
}
