package manager

import (
	"errors"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/task"
)

func TestWorkers(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	if found, err := m.Workers(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("nobody: %v, %v", found, err)
	}
	began, err := m.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Register(t.Context(), task.Registration{
		Name: "w1", Node: "n", Host: "h", PID: 7, Identity: "i", Version: "v", Containment: "group", Slots: 3, Labels: []string{"gpu=1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	queue := task.QueueUse{Class: "*", Queue: "default", Threads: 3, Idle: 1, Processing: 2}
	beat := func(state task.WorkerState) task.WorkerCommand {
		renewal, err := s.Renew(t.Context(), r.Session, fleet.Heartbeat{
			State: state, Reason: "because", Busy: 2, Stuck: 1, Queues: []task.QueueUse{queue},
		})
		if err != nil {
			t.Fatal(err)
		}
		return renewal.Order
	}
	beat(task.WorkerReady)
	found, err := m.Workers(t.Context())
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	w := found[0]
	if w.Name != "w1" || w.ID != 1 || w.Incarnation != 1 || w.Node != "n" || w.Host != "h" || w.PID != 7 || w.Version != "v" ||
		w.Containment != "group" || w.Slots != 3 || w.Busy != 2 || w.Stuck != 1 || w.Reason != "because" || w.State != task.WorkerReady ||
		w.Order != task.NoCommand || len(w.Labels) != 1 || len(w.Queues) != 1 || w.Queues[0] != queue || len(w.Tasks) != 0 {
		t.Errorf("%+v", w)
	}
	if w.Started.Before(began) || w.Heartbeat.Before(w.Started) || !w.Ended.IsZero() || w.Silent < 0 || w.Silent > task.Seconds(time.Minute) {
		t.Errorf("times: %+v", w)
	}
	for _, order := range []task.WorkerCommand{task.CommandDrain, task.NoCommand, task.CommandStop} {
		was, err := m.CommandWorker(t.Context(), "w1", order)
		if err != nil || was.Name != "w1" || was.State != task.WorkerReady {
			t.Errorf("ordered %+v, %v", was, err)
		}
		if got := beat(task.WorkerReady); got != order {
			t.Errorf("ordered %q, want %q", got, order)
		}
	}
	if err := s.Leave(t.Context(), r.Session); err != nil {
		t.Fatal(err)
	}
	if w, err := m.Worker(t.Context(), "w1"); err != nil || w.State != task.WorkerStopped || w.Ended.IsZero() || w.State.Alive() {
		t.Errorf("after its end: %+v, %v", w, err)
	}
	_, err1 := m.Worker(t.Context(), "nobody")
	_, err2 := m.CommandWorker(t.Context(), "nobody", task.CommandDrain)
	if !errors.Is(err1, task.ErrNoWorker) || !errors.Is(err2, task.ErrNoWorker) {
		t.Errorf("unknown: %v, %v", err1, err2)
	}
}
