package worker

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A10: a worker that is told to stop claims nothing, finishes what runs and
// leaves the registry.
func TestDrainFinishesWhatRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	started, release := twoFiles(t)
	p := s.script(t, "p", waiting)
	id := s.open(t, p, input(started+" "+release))
	w := s.start(t, setting(t, "drain_timeout=60"))
	awaitFile(t, started)
	w.cancel()
	w.log.await(t, "draining")
	next := s.open(t, p, input(started+" "+release))
	wait.Eventually(t, patience, func() bool { return s.worker(t).State == task.WorkerDraining }, "the registry does not say so")
	touch(t, release)
	w.stop(t)
	checkFields(t, s.Task(t, id), map[string]string{"state": "executed", "round": "0", "releases": "-"})
	checkFields(t, s.Task(t, next), map[string]string{"state": "open", "0:worker": "-"})
	if got := s.worker(t); got.State != task.WorkerStopped || len(got.Tasks) > 0 || got.Ended.IsZero() {
		t.Errorf("the registry says %+v", got)
	}
}

func (s *site) worker(t *testing.T) task.Worker {
	t.Helper()
	info, _, err := s.Store.Worker(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// What still runs after drain_timeout is stopped and handed back; a hurried
// worker does so at once, with KILL.
func TestDrainHandsBackWhatIsLeft(t *testing.T) {
	t.Parallel()
	for name, hurried := range map[string]bool{"timeout": false, "hurry": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			pid := filepath.Join(t.TempDir(), "pid")
			id := s.open(t, s.script(t, "p", `trap "" TERM; `+sleeper), input(pid), limits("1000", "0"))
			w := s.start(t, func(o *options) {
				o.DrainTimeout, o.KillGrace = 300*time.Millisecond, 300*time.Millisecond
				if hurried {
					o.DrainTimeout, o.KillGrace = time.Hour, time.Hour
				}
			})
			group := awaitFile(t, pid)
			w.cancel()
			w.log.await(t, "draining")
			if hurried {
				w.StopNow()
				w.StopNow()
			}
			w.stop(t)
			if !gone(group)() {
				t.Error("the program outlived its worker")
			}
			checkFields(t, s.Task(t, id), map[string]string{
				"state": "open", "round": "1", "releases": "1", "timeouts": "0", "fails": "0", "losses": "-",
			})
		})
	}
}

// Drained from outside, a worker finishes what runs, claims nothing and stays;
// undrained, it goes on; stopped, it ends. The order outlives the worker.
func TestOrders(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	started, release := twoFiles(t)
	id := s.open(t, s.script(t, "p", waiting), input(started+" "+release))
	w := s.start(t)
	awaitFile(t, started)
	s.command(t, task.CommandDrain)
	wait.Eventually(t, patience, func() bool { return s.worker(t).State == task.WorkerDraining }, "it does not drain")
	next := s.open(t, s.script(t, "q", "true"))
	touch(t, release)
	s.await(t, id, sm.Executed)
	wait.Eventually(t, patience, func() bool { return s.worker(t).State == task.WorkerDrained }, "it is not drained")
	w.stop(t)
	if task := s.Task(t, next); task.State != sm.Open {
		t.Errorf("the drained worker claimed: %s", task.State)
	}
	w = s.start(t)
	w.log.await(t, "drained by an operator")
	if task := s.Task(t, next); task.State != sm.Open {
		t.Errorf("the name was drained, but claimed: %s", task.State)
	}
	s.command(t, task.NoCommand)
	s.await(t, next, sm.Executed)
	s.command(t, task.CommandStop)
	if err := wait.Receive(t, patience, w.done, "it does not stop"); err != nil {
		t.Error(err)
	}
	if got := s.worker(t); got.State != task.WorkerStopped {
		t.Errorf("state %s", got.State)
	}
}

func (s *site) command(t *testing.T, order task.WorkerCommand) {
	t.Helper()
	if _, err := s.Store.CommandWorker(t.Context(), "w", order); err != nil {
		t.Fatal(err)
	}
}

// An idle worker stops at once, although it waits for work.
func TestIdleWorkerStopsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := s.start(t)
	w.log.await(t, "no open task to claim")
	begun := time.Now()
	w.stop(t)
	wait.Within(t, "stopping", begun, time.Now(), turnedAwayWait/2)
}
