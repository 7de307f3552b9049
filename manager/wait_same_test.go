package manager

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/task"
)

// The namespace is flushed, and other tasks get the same ids, during a wait. The wait ends with an error instead of telling of them.
func TestWaitAcrossFlush(t *testing.T) {
	t.Parallel()
	for name, used := range map[string]bool{"used again": true, "not used again": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := redistest.Namespace(t)
			m, other := newManager(t, ns), newManager(t, ns)
			ids := mustOpen(t, m, 3, spec())
			plan, err := m.NewPlan(t.Context(), task.PlanSpec{})
			if err != nil {
				t.Fatal(err)
			}
			began, ended := make(chan struct{}, 100), make(chan error, 2)
			go func() {
				_, err := m.Wait(t.Context(), ids, func(Progress) { began <- struct{}{} })
				ended <- err
			}()
			go func() {
				_, err := m.WaitPlan(t.Context(), plan, func(*task.Plan) { began <- struct{}{} })
				ended <- err
			}()
			for range 2 {
				wait.Receive(t, limit, began, "no report of the beginning")
			}
			if _, err := other.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if used {
				if again := mustOpen(t, other, 3, task.Spec{Program: "another", Source: "s"}); !slices.Equal(again, ids) {
					t.Fatalf("opened %v, want the ids %v once more", again, ids)
				}
				if again, err := other.NewPlan(t.Context(), task.PlanSpec{}); err != nil || again != plan {
					t.Fatalf("made plan %d, %v, want %d once more", again, err, plan)
				}
			}
			for range 2 {
				if err := wait.Receive(t, limit, ended, "it does not end"); !errors.Is(err, task.ErrGone) {
					t.Errorf("ends with %v, want task.ErrGone", err)
				}
			}
		})
	}
}

// waiting has begun to wait for the tasks.
func waiting(t *testing.T, m *Manager, ids ...int64) *waiter {
	t.Helper()
	w := m.newWaiter()
	if err := w.begin(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	return w
}

// look looks at all tasks once.
func look(t *testing.T, w *waiter) {
	t.Helper()
	if _, err := w.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A task that is held and released stays the one that was waited for, whatever that
// stamps again, and at whichever step the waiting began.
func TestWaitWhileHeld(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m := newManager(t, ns)
	ids := mustOpen(t, m, 1, spec())
	held := spec()
	held.Hold = "later"
	ids = append(ids, mustOpen(t, m, 1, held)...)
	var all []*waiter
	step := func(change func([]int64) ([]Change, error), id int64) {
		t.Helper()
		w := waiting(t, m, ids...)
		all = append(all, w)
		if changes, err := change([]int64{id}); err != nil || changes[0].Err != nil {
			t.Fatalf("%+v, %v", changes, err)
		}
		for i, w := range all {
			if look(t, w); w.progress.Damaged != 0 || len(w.open) != len(ids) {
				t.Errorf("who waits since step %d sees %d damaged, %d open at step %d", i, w.progress.Damaged, len(w.open), len(all)-1)
			}
		}
	}
	hold := func(ids []int64) ([]Change, error) { return m.Hold(t.Context(), ids, ChangeOptions{Reason: "wait"}) }
	release := func(ids []int64) ([]Change, error) { return m.Unhold(t.Context(), ids, ChangeOptions{}) }
	for range 3 {
		step(hold, ids[0])
		step(release, ids[0])
		step(release, ids[1])
		step(hold, ids[1])
	}
}

// A client in another language writes a record in steps: one that lacks its stamps
// as yet is that of the task all the same.
func TestWaitForHalfWritten(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	srv, m := redistest.Shared(t), newManager(t, ns)
	key := ns + ":task:1"
	mustOpen(t, m, 1, spec())
	stamp, _ := srv.Do(t, "HGET", key, "0:open").(string)
	srv.Do(t, "HDEL", key, "0:open")
	w := waiting(t, m, 1)
	look(t, w)
	srv.Do(t, "HSET", key, "0:open", stamp)
	if look(t, w); w.progress.Damaged != 0 || len(w.open) != 1 {
		t.Errorf("%d damaged, %d open", w.progress.Damaged, len(w.open))
	}
	srv.Do(t, "HSET", key, "0:open", "9"+stamp)
	if _, err := w.sweep(t.Context()); !errors.Is(err, task.ErrGone) || !strings.Contains(err.Error(), "task 1") || !strings.Contains(err.Error(), "another task") {
		t.Errorf("another task: %v", err)
	}
}
