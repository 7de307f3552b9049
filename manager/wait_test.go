package manager

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func TestWait(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s, m := worktest.Open(t, ns), newManager(t, ns)
	mustOpen(t, m, 5, spec())
	began := make(chan struct{}, 1000)
	done := make(chan Progress, 1)
	go func() {
		p, err := m.WaitAll(t.Context(), func(Progress) { began <- struct{}{} })
		if err != nil {
			t.Error(err)
		}
		done <- p
	}()
	wait.Receive(t, limit, began, "no report of the beginning")
	background(t, newManager(t, ns, quick()), Handlers{Unhandled: Archive}) // archived tasks count by their outcome
	worktest.Drain(t, s, func(c *tasks.Claimed) worktest.Result {
		if c.Task.ID == 2 || c.Task.ID == 4 {
			return worktest.Fail(c)
		}
		return worktest.Echo(c)
	})
	p := wait.Receive(t, limit, done, "Wait does not end")
	slices.Sort(p.Unsuccessful)
	if p.Total != 5 || p.Done != 5 || p.States[statemachine.Succeeded] != 3 || p.States[statemachine.Failed] != 2 ||
		!slices.Equal(p.Unsuccessful, []int64{2, 4}) || p.Damaged != 0 {
		t.Errorf("progress %+v", p)
	}
}

func TestWaitForSome(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	srv, m := redistest.Shared(t), newManager(t, ns)
	mustOpen(t, m, 3, spec())
	if p, err := m.Wait(t.Context(), []int64{}, func(Progress) { t.Error("told of no task") }); err != nil || p.Total != 0 {
		t.Errorf("no ids: %+v, %v, want no waiting", p, err)
	}
	if _, err := m.Wait(t.Context(), []int64{1, 99}, nil); !errors.Is(err, task.ErrNoTask) {
		t.Errorf("unknown id: %v, want task.ErrNoTask", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p, err := m.Wait(ctx, []int64{1, 2, 2}, func(Progress) { cancel() })
	if !errors.Is(err, context.Canceled) || p.Total != 2 || p.Done != 0 || p.States[statemachine.Open] != 2 {
		t.Errorf("%+v, %v, want 2 open tasks and the end of the wait", p, err)
	}
	srv.Do(t, "HSET", ns+":task:1", "state", "nonsense")
	if p, err := m.Wait(t.Context(), []int64{1}, nil); err != nil || p.Damaged != 1 || !slices.Equal(p.Unsuccessful, []int64{1}) {
		t.Errorf("%+v, %v, want a damaged task", p, err)
	}
}

// Who interrupts a wait is named, also where that cuts a call to Redis short: when it begins, and while it looks.
func TestWaitSaysWhatEndedIt(t *testing.T) {
	t.Parallel()
	ns, srv := redistest.Namespace(t), redistest.Shared(t)
	proxy := srv.Proxy(t)
	host, port, _ := cutAddr(proxy.Addr())
	m := newManager(t, ns, at(host, port))
	mustOpen(t, m, 2, spec())
	srv.Do(t, "HSET", ns+":task:1", "state", "running") // its progress is asked for with a second call
	why := errors.New("interrupted")
	for when, field := range map[string]string{"when it begins": "0:blocked", "while it looks": "outcome"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		proxy.HaltBefore(func(args []string) bool {
			if slices.Contains(args, field) {
				cancel(why)
			}
			return false
		})
		for _, waits := range []func() (Progress, error){
			func() (Progress, error) { return m.Wait(ctx, []int64{1, 2}, nil) },
			func() (Progress, error) { return m.WaitAll(ctx, nil) },
		} {
			if _, err := waits(); !errors.Is(err, why) || errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want %v", when, err, why)
			}
		}
	}
	if _, err := m.Wait(t.Context(), []int64{99}, nil); !errors.Is(err, task.ErrNoTask) {
		t.Errorf("%v, want %v", err, task.ErrNoTask)
	}
}

func TestReading(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s, m := worktest.Open(t, ns), newManager(t, ns)
	mustOpen(t, m, 2, task.Spec{Program: "p", Source: "s", Input: "in", Retry: task.Retry{Limit: task.AtMost(1)}})
	worktest.Drain(t, s, func(c *tasks.Claimed) worktest.Result {
		if c.Task.ID == 1 && c.Task.Round == 0 {
			return worktest.Fail(c)
		}
		return worktest.Echo(c)
	})
	found, err := m.Task(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	rounds := found.Rounds
	if len(rounds) != 2 || rounds[0].Error != "it broke\n" || rounds[1].Output != "in\n" || rounds[0].Worker != "w" {
		t.Errorf("rounds %+v", rounds)
	}
	if found.Output() != "in\n" || found.Last().Number != 1 || found.Fails != 1 || rounds[0].Stamps["failure"].IsZero() {
		t.Errorf("task %+v", found)
	}
	if _, err := m.Task(t.Context(), 9); !errors.Is(err, task.ErrNoTask) {
		t.Errorf("task 9: %v, want task.ErrNoTask", err)
	}
	if both, err := m.Tasks(t.Context(), []int64{9, 2}); err != nil || both[0] != nil || both[1].ID != 2 {
		t.Errorf("tasks 9 and 2: %v, %v", both, err)
	}
}
