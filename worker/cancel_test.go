package worker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// askStop asks for the stop of a running task as a manager does, again if the
// worker wrote to the task meanwhile.
func (s *site) askStop(t *testing.T, id int64) {
	t.Helper()
	wait.Eventually(t, patience, func() bool {
		task := s.Task(t, id)
		move, err := sm.Decide(&task.Task, sm.Occurrence{Event: sm.Cancel, Actor: sm.Manager}, 0)
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.Store.AskStop(t.Context(), tasks.Commit{Move: move, Writer: "manager", Bucket: task.Bucket})
		if err != nil {
			t.Fatal(err)
		}
		return out[0].Err == nil
	}, "task %d cannot be asked to stop", id)
}

// stopping returns when the task was asked to stop, and when it had.
func stopping(t *testing.T, task *tasks.TaskHeader) (asked, ended sm.Time) {
	t.Helper()
	asked, err := sm.ParseTime(task.Fields["cancel_requested"])
	if err != nil {
		t.Fatal(err)
	}
	ended, err = sm.ParseTime(task.Fields["0:terminated"])
	if err != nil {
		t.Fatal(err)
	}
	return asked, ended
}

// stoppedSoon checks that a task had stopped within a second.
func stoppedSoon(t *testing.T, task *tasks.TaskHeader) {
	t.Helper()
	asked, ended := stopping(t, task)
	within(t, "stopping", asked, ended, time.Second)
}

// D14: a cancelled task is stopped within a second, with all its processes; what
// it wrote is kept, and the slot is free.
func TestCancelStopsTheRound(t *testing.T) {
	t.Parallel()
	for _, layer := range []shim.Layer{shim.Group, ""} {
		t.Run("containment "+string(layer), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			pid := filepath.Join(t.TempDir(), "pid")
			id := s.open(t, s.script(t, "p", "(setsid sleep 600 &)\n"+sleeper), input(pid), limits("1000", "5"),
				func(sp *task.Definition) { storetest.Set(sp, "max_fails", "5") })
			w := s.start(t, func(o *options) {
				var err error
				if o.container, err = shim.New(shim.Options{Want: layer, Name: s.Namespace}); err != nil {
					t.Fatal(err)
				}
			})
			awaitFile(t, pid)
			s.askStop(t, id)
			task := s.await(t, id, sm.Terminated)
			hosttest.AwaitNoProcess(t, 0, "TDF_NAMESPACE="+s.Namespace)
			stoppedSoon(t, task)
			checkFields(t, task, map[string]string{
				"0:output": "partial\n", "0:error": "warn\nTERMINATED - cancelled", "0:executed": "-", "0:class": "-",
				"0:end": "terminate", "round": "0", "fails": "0", "timeouts": "0", "releases": "-", "1:open": "-",
			})
			if n := s.Raw.Exists(t.Context(), s.Key("stop:w")).Val(); n != 0 {
				t.Error("the worker is still to stop something")
			}
			w.log.await(t, "task 1 was terminated (cancelled)")
			s.await(t, s.open(t, s.script(t, "q", "true")), sm.Executed)
		})
	}
}

// Each heartbeat names a task that is still stopping; that neither sends TERM
// again nor begins the grace anew.
func TestCancelIsHeardOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	started := filepath.Join(t.TempDir(), "started")
	id := s.open(t, s.script(t, "p", `trap 'echo term' TERM; echo go > "$1"; while :; do sleep 0.02; done`), input(started))
	w := s.start(t, func(o *options) { o.KillGrace = time.Second })
	awaitFile(t, started)
	s.askStop(t, id)
	wait.Eventually(t, patience, func() bool {
		w.signalChange() // a heartbeat more; were the grace to begin anew, it would never end
		return s.Task(t, id).State == sm.Terminated
	}, "the program is not killed")
	task := s.Task(t, id)
	if n := strings.Count(task.Fields["0:output"], "term"); n != 1 {
		t.Errorf("got TERM %d times: %q", n, task.Fields["0:output"])
	}
	if asked, ended := stopping(t, task); ended.Sub(asked) < 900*sm.Millisecond {
		t.Errorf("killed after %s s, want the grace of one second", ended.Sub(asked).Text())
	}
}

// A program that is still being fetched is not waited for.
func TestCancelWhileFetching(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.open(t)
	w := s.start(t, func(o *options) {
		o.Programs = fakePrograms(func(ctx context.Context, note func(string)) (fetch.Version, error) {
			note("attempting to fetch")
			<-ctx.Done()
			return fetch.Version{}, ctx.Err()
		})
	})
	w.log.await(t, "attempting to fetch")
	s.askStop(t, id)
	task := s.await(t, id, sm.Terminated)
	checkContains(t, "error", task.Fields["0:error"], "TERMINATED - cancelled")
	stoppedSoon(t, task)
}

// A Go handler is cancelled too; one that returns by itself is reported as it is.
func TestCancelHandler(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	begun := make(chan struct{}, 1)
	cause := make(chan error, 1)
	s.start(t, handlers(map[string]Handler{"h": func(ctx context.Context, j *Job) error {
		fmt.Fprintln(j.Stdout(), "partial")
		begun <- struct{}{}
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return ctx.Err()
	}}))
	id := s.open(t, forHandler("h"))
	wait.Receive(t, patience, begun, "the handler does not begin")
	s.askStop(t, id)
	checkFields(t, s.await(t, id, sm.Terminated), map[string]string{"0:output": "partial\n", "0:error": "TERMINATED - cancelled"})
	if err := wait.Receive(t, patience, cause, "the handler is not told"); !errors.Is(err, ErrCancelled) {
		t.Errorf("cancelled because of %v", err)
	}
}

// stubborn says when it gets TERM, and goes on. Its shell may say on stderr that
// the signal met a child.
const stubborn = `echo partial; exec 2> /dev/null; trap 'echo term > "$2.tmp"; mv "$2.tmp" "$2"' TERM; echo go > "$1"; while :; do sleep 0.02; done`

// A task that is cancelled while it is about to be opened again is not opened.
func TestCancelMeetsOtherEnds(t *testing.T) {
	t.Parallel()
	t.Run("drain", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		started, termed := twoFiles(t)
		id := s.open(t, s.script(t, "p", stubborn), input(started+" "+termed))
		w := s.start(t, func(o *options) { o.KillGrace = time.Second })
		awaitFile(t, started)
		w.cancel()
		awaitFile(t, termed)
		s.askStop(t, id)
		w.stop(t)
		task := s.Task(t, id)
		checkFields(t, task, map[string]string{
			"state": "terminated", "0:output": "partial\n", "0:error": "TERMINATED - cancelled", "releases": "-", "1:open": "-",
		})
		checkContains(t, "log", task.Fields["log"], "handing back task 1: the worker stops", "it is not opened again", "running -> terminated")
	})
	t.Run("timeout", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		started, termed := twoFiles(t)
		id := s.open(t, s.script(t, "p", stubborn), input(started+" "+termed), limits("2", "3"))
		s.start(t, func(o *options) { o.KillGrace = time.Second })
		awaitFile(t, termed)
		s.askStop(t, id)
		checkFields(t, s.await(t, id, sm.TimedOut, sm.Open, sm.Terminated), map[string]string{
			"state": "timed_out", "timeouts": "1", "0:output": "partial\n", "0:error": "TERMINATED - execution timed out...",
			"0:class": "time", "1:open": "-",
		})
	})
	t.Run("report", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		started, release := twoFiles(t)
		id := s.open(t, s.script(t, "p", waiting), input(started+" "+release))
		proxy, st := s.behindProxy(t)
		w := s.startOn(t, st)
		awaitFile(t, started)
		proxy.Down()
		touch(t, release)
		w.log.await(t, "keeping a result on disk")
		s.askStop(t, id)
		proxy.Up()
		checkFields(t, s.await(t, id, sm.Executed, sm.Terminated), map[string]string{
			"state": "executed", "0:output": "done 0\n", "0:error": "", "0:class": "-",
		})
	})
}

// A round is stopped also if its worker was told of that before it began.
func TestCancelBeforeTheRoundBegins(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w, err := assemble(s.options(t, s.Store))
	if err != nil {
		t.Fatal(err)
	}
	task := &tasks.Claimed{}
	task.Task.ID = 7
	w.cancel([]int64{6, 7})
	ctx, cancel := context.WithCancelCause(t.Context())
	w.slots[0].begin(w.newRound(t.Context(), task, redisClock{}, w.slots[0]), cancel, 0)
	if err := context.Cause(ctx); !errors.Is(err, ErrCancelled) {
		t.Errorf("the round goes on: %v", err)
	}
}

// A worker that is told that a round is overdue ends it if that is true: how long it has
// run it knows by its own clock, end_before is by that of Redis.
func TestToldThatItIsOverdue(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := s.Store.PublishLease(t.Context(), sm.Second); err != nil {
		t.Fatal(err)
	}
	now, err := s.Store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	started := filepath.Join(t.TempDir(), "pid")
	id := s.open(t, s.script(t, "p", sleeper), input(started), limits("1800", "0"),
		func(sp *task.Definition) { storetest.Set(sp, "end_before", now.Add(3000*sm.Second).Text()) })
	w := s.start(t)
	awaitFile(t, started)
	tell := func() { s.Raw.SAdd(t.Context(), s.Key("stop:w"), "d1") }
	s.StepClock(t, now.Add(2000*sm.Second))
	tell()
	w.log.await(t, "the time of task 1 is not over by the clock of this host")
	s.StepClock(t, now.Add(3001*sm.Second))
	task := s.await(t, id, sm.Executed)
	if text := task.Fields["0:error"]; !strings.Contains(text, stoppedEndBefore) {
		t.Errorf("error %q", text)
	}
}
