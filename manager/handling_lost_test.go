package manager

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A handler of a manager that is cut off is told to end in time. What it did counts,
// if nobody else got the task meanwhile.
func TestCutOffInHandler(t *testing.T) {
	t.Parallel()
	ns, srv := redistest.Namespace(t), redistest.Shared(t)
	for name, lose := range map[string]func(*redistest.Proxy){
		"refused": (*redistest.Proxy).Down,
		"hanging": (*redistest.Proxy).Hang,
		"deleted": func(*redistest.Proxy) { srv.Do(t, "HDEL", ns+"deleted:handling", "1") }, // noticed at the next renewal
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := srv.Proxy(t)
			host, port, _ := cutAddr(proxy.Addr())
			m := newManager(t, ns+name, quick(), shortLease(), at(host, port))
			ended(t, newManager(t, ns+name), 1)
			calls := make(chan error, 10)
			background(t, m, Handlers{Succeeded: func(ctx context.Context, _ *task.Task) error {
				lose(proxy)
				<-ctx.Done()
				calls <- context.Cause(ctx)
				return nil
			}})
			if cause := wait.Receive(t, limit, calls, "the handler is not told to end"); !errors.Is(cause, ErrHandlingLost) {
				t.Errorf("the handler was told to end because of %v", cause)
			}
			proxy.Release()
			proxy.Up()
			until(t, newManager(t, ns+name), "the archive", archived(1))
			if len(calls) != 0 {
				t.Errorf("the handler was called %d times more", len(calls))
			}
		})
	}
}

// Whatever steps the clock of Redis makes, the tasks of a manager that lives are its own, for those with
// handlers and those without, and the tasks of a dead one are not.
func TestHandlingWhileClockSteps(t *testing.T) {
	t.Parallel()
	clock := redistest.NewClock(t)
	srv, ns := redistest.Start(t, redistest.WithClock(clock)), redistest.Namespace(t)
	s, err := store.Dial(storetest.Where(srv), ns)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	on := at(srv.Socket(), "0")
	m, other, archivist := newManager(t, ns, quick(), on), newManager(t, ns, quick(), quiet(), on), newManager(t, ns, quick(), quiet(), on)
	mustOpen(t, m, 2, spec())
	worktest.Drain(t, s, worktest.Echo)
	dead, called, release := fleet.NewHandling(2*time.Second), make(chan int64, 100), make(chan struct{})
	if err := s.BeginHandling(t.Context(), dead, &fleet.HandlingWatch{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Take(t.Context(), &tasks.TakeRequest{Instance: dead.Instance, Outcome: statemachine.Succeeded, Ask: []int64{2}}); err != nil {
		t.Fatal(err)
	}
	handlers := Handlers{Succeeded: func(_ context.Context, task *task.Task) error {
		called <- task.ID
		select {
		case <-release:
		case <-t.Context().Done():
		}
		return nil
	}}
	background(t, m, handlers)
	if id := wait.Receive(t, limit, called, "the handler is not called"); id != 1 {
		t.Errorf("the handler is called for task %d, which another manager has", id)
	}
	background(t, other, handlers)
	background(t, archivist, Handlers{Unhandled: Archive})
	for _, step := range []time.Duration{time.Hour, -time.Hour} {
		clock.Set(t, step)
		before := archivist.Stats().Passes
		wait.Eventually(t, limit, func() bool { return archivist.Stats().Passes > before+3 }, "no rounds")
	}
	some := func(c Counts) bool { return c[statemachine.Archived] > 0 }
	wait.Eventually(t, limit, func() bool { return len(called) > 0 || has(t, archivist, some) }, "the task of the dead manager stays")
	for len(called) > 0 {
		if id := <-called; id != 2 {
			t.Errorf("task %d is taken from a manager that lives", id)
		}
	}
	if has(t, archivist, archived(2)) {
		t.Error("the task of a manager that lives is archived")
	}
	close(release)
	until(t, m, "the archive", archived(2))
}

// Run gives back what it was granted and did not handle.
func TestEndGivesBack(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m := newManager(t, ns, quick())
	ended(t, m, 5)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := m.Run(ctx, Handlers{Succeeded: func(context.Context, *task.Task) error {
		cancel()
		return nil
	}})
	if err != nil || !has(t, m, func(c Counts) bool { return c[statemachine.Succeeded] == 4 }) {
		t.Errorf("Run = %v, or not 4 tasks left", err)
	}
	checkNothingHeld(t, ns)
}
