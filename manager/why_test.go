package manager

import (
	"errors"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/task"
)

// enlist registers a worker on node n1 with a GPU, as one does that is there.
func enlist(t *testing.T, m *Manager) {
	t.Helper()
	_, err := redisOf(m).Register(t.Context(), task.Registration{
		Name: "w", Node: "n1", Host: "h", PID: 1, Identity: "i", Version: "v", Containment: "group", Slots: 2,
		Labels: []string{"gpu=v100"}, Resources: task.Resources{"gpu": 1}, MaxThreads: task.Unlimited,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// saysWhy wants the first reason of a task: its kind, words of its text, and the
// change.
func saysWhy(t *testing.T, m *Manager, id int64, kind, text string, change Remedy) {
	t.Helper()
	e, err := m.Why(t.Context(), id)
	if err != nil || len(e) == 0 {
		t.Fatalf("task %d: %v, %v", id, e, err)
	}
	r, got := e[0], e[0].Change
	if string(r.Kind) != kind || !strings.Contains(r.Text, text) || got != change || r.Blocks != (change != Remedy{}) {
		t.Errorf("task %d: %+v with %+v, want %s, %q, %+v", id, r, got, kind, text, change)
	}
}

func remedy(object, name, attribute, value string) Remedy {
	return Remedy{Object: object, Name: name, Attribute: attribute, Value: value}
}

func TestWhyWaiting(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	id := mustOpen(t, m, 1, spec())[0]
	saysWhy(t, m, id, "no_worker", "no worker is alive", remedy("worker", "", "start", "any configuration"))
	enlist(t, m)
	saysWhy(t, m, id, "claimable", "the next claim of worker w on n1", Remedy{})

	labelled := mustOpen(t, m, 1, task.Spec{Program: "p", Source: "s", Labels: []string{"gpu=a100"}})[0]
	saysWhy(t, m, labelled, "label", "offers gpu=v100", remedy("worker", "w", "labels", "gpu=a100"))

	if _, err := m.Hold(t.Context(), []int64{labelled}, ChangeOptions{Reason: "not yet"}); err != nil {
		t.Fatal(err)
	}
	saysWhy(t, m, labelled, "held", "not yet", remedy("task", "2", "hold", ""))
	if _, err := m.SetQueue(t.Context(), task.DefaultQueue, setQueue("paused", "true"), ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	saysWhy(t, m, id, "paused", "queue default is paused", remedy("queue", "default", "paused", "false"))
	e, err := m.WhyQueue(t.Context(), task.DefaultQueue)
	if err != nil || !e.Blocked() || e[0].Kind != "paused" {
		t.Errorf("the queue: %+v, %v", e, err)
	}
}

// A task that has failed on a node is left to others for a while: the node is in the way, and nobody else's is.
func TestWhyElsewhere(t *testing.T) {
	t.Parallel()
	m, srv := newManager(t, redistest.Namespace(t)), redistest.Shared(t)
	enlist(t, m)
	id := mustOpen(t, m, 1, spec())[0]
	srv.Do(t, "HSET", m.Namespace()+":task:1", "avoid", "4000000000.000000 n1")
	saysWhy(t, m, id, "elsewhere", "it has failed on node n1, which leaves it to other nodes until 2096-10-02", remedy("time", "", "now", "4000000000.000000"))
	srv.Do(t, "HSET", m.Namespace()+":task:1", "avoid", "1000000000.000000 n1")
	saysWhy(t, m, id, "claimable", "the next claim of worker w on n1", Remedy{})
	srv.Do(t, "HSET", m.Namespace()+":task:1", "avoid", "4000000000.000000 n1")
	_, err := redisOf(m).Register(t.Context(), task.Registration{Name: "w2", Node: "n2", Identity: "i2", Slots: 1, MaxThreads: task.Unlimited})
	if err != nil {
		t.Fatal(err)
	}
	saysWhy(t, m, id, "claimable", "the next claim of worker w2 on n2", Remedy{})
}

// A task whose version others keep, or nobody, says so.
func TestWhyVersion(t *testing.T) {
	t.Parallel()
	m, srv := newManager(t, redistest.Namespace(t)), redistest.Shared(t)
	enlist(t, m)
	pinned := spec()
	pinned.Program, pinned.Source = "p", "http://h/p.zip"+task.Pin(strings.Repeat("0a", 32))
	id := mustOpen(t, m, 1, pinned)[0]
	version := "version " + strings.Repeat("0a", 32) + " of program p"
	later := remedy("time", "", "now", "4000000000.000000")
	srv.Do(t, "HSET", m.Namespace()+":task:1", "avoid", "4000000000.000000 /x/y/")
	saysWhy(t, m, id, "elsewhere", "worker w on n1 lacks "+version+", so the task is left until 2096-10-02", later)
	saysWhy(t, m, id, "elsewhere", "to workers that keep it: x, y", later)
	srv.Do(t, "HSET", m.Namespace()+":task:1", "avoid", "4000000000.000000 /x/w/")
	saysWhy(t, m, id, "claimable", "the next claim of worker w on n1", Remedy{})
	srv.Do(t, "HSET", m.Namespace()+":task:1", "avoid", "4000000060.000000 /", "not_before", "4000000000.000000")
	saysWhy(t, m, id, "version", "no worker had "+version+"; it waits for one until 2096-10-02 07:07:40 UTC", later)
	if e, err := m.Why(t.Context(), id); err != nil || len(e) != 1 {
		t.Errorf("beside that: %+v, %v", e, err)
	}
}

func TestWhyStarted(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	enlist(t, m)
	ids := mustOpen(t, m, 3, task.Spec{Program: "p", Source: "s", Resources: map[string]int{"gpu": 1}})
	if got := claim(t, redisOf(m), 1); len(got) != 1 || got[0].Task.ID != ids[0] {
		t.Fatalf("claimed %+v", got)
	}
	saysWhy(t, m, ids[0], "running", "round 0 on worker w on node n1", Remedy{})
	saysWhy(t, m, ids[1], "taken", "(task 1 has 1)", remedy("node", "n1", "free", "gpu=1"))
	if _, err := m.Cancel(t.Context(), ids[1:2], ChangeOptions{Reason: "no need"}); err != nil {
		t.Fatal(err)
	}
	saysWhy(t, m, ids[1], "outcome", "cancelled: called off by", Remedy{})
}

func TestWhyRefuses(t *testing.T) {
	t.Parallel()
	srv, ns := redistest.Shared(t), redistest.Namespace(t)
	m := newManager(t, ns)
	id := mustOpen(t, m, 1, spec())[0]
	srv.Do(t, "HSET", ns+":task:1", "state", "nonsense")
	if _, err := m.Why(t.Context(), id); !errors.Is(err, task.ErrDamaged) {
		t.Errorf("a damaged task: %v", err)
	}
	if _, err := m.Why(t.Context(), 99); !errors.Is(err, task.ErrNoTask) {
		t.Errorf("no task: %v", err)
	}
	if _, err := m.WhyQueue(t.Context(), "none"); !errors.Is(err, task.ErrNoQueue) {
		t.Errorf("no queue: %v", err)
	}
}
