package audit

import (
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// world is a namespace with a task in each of many states; the names are inputs.
func world(t *testing.T) (ns string, s *store.Store, id map[string]int64) {
	t.Helper()
	ns = redistest.Namespace(t)
	s = worktest.Open(t, ns)
	id = map[string]int64{}
	open := func(maxFails string, names ...string) {
		for _, name := range names {
			spec := storetest.Define("program", "p", "source", "s", "input", name, "max_fails", maxFails, "max_losses", "0")
			switch name {
			case "late":
				storetest.Set(&spec, "end_before", "5")
			case "deadline", "running":
				storetest.Set(&spec, "end_before", "9000000000")
			case "elsewhere":
				storetest.Set(&spec, "priority", strconv.Itoa(7))
			case "open":
				storetest.Set(&spec, "start_after", "8000000000")
			}
			if name == "deadline" {
				storetest.Set(&spec, "start_after", "8000000000")
			}
			ids, err := s.Open(t.Context(), tasks.OpenRequest{Key: ns + name, Specs: []task.Definition{spec}})
			if err != nil {
				t.Fatal(err)
			}
			id[name] = ids[0]
		}
	}
	open("0", "ok", "fail", "slow", "lost", "late", "archived", "open", "deadline")
	open("1", "again")
	worktest.Drain(t, s, play)
	archiveTask(t, s, id["archived"])
	open("0", "running")
	if _, err := s.Claim(t.Context(), tasks.ClaimRequest{
		Worker: "w", Request: "r", Candidates: storetest.Free(task.Bucket{}), Max: 1, Node: "n", MaxThreads: task.Unlimited,
	}); err != nil {
		t.Fatal(err)
	}
	open("0", "leased", "stopping")
	lease(t, s, "l")
	lease(t, s, "m")
	stop(t, s, id["stopping"])
	open("0", "elsewhere")
	return ns, s, id
}

// lease claims a task for a worker with a session.
func lease(t *testing.T, s *store.Store, name string) {
	t.Helper()
	r, err := s.Register(t.Context(), task.Registration{
		Name: name, Node: "node-1", Host: "h", PID: 1, Identity: "i", Slots: 2, MaxThreads: task.Unlimited,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), tasks.ClaimRequest{
		Worker: name, Request: "r", Candidates: storetest.Free(task.Bucket{}), Max: 1, Node: "node-1", MaxThreads: task.Unlimited,
		Incarnation: r.Incarnation,
	}); err != nil {
		t.Fatal(err)
	}
}

// stop asks for a stop of a running task.
func stop(t *testing.T, s *store.Store, id int64) {
	t.Helper()
	task, err := s.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	move, err := statemachine.Decide(&task.Task, statemachine.Occurrence{Event: statemachine.Cancel, Actor: statemachine.Manager}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := s.AskStop(t.Context(), tasks.Commit{Move: move, Writer: "m"}); err != nil || out[0].Err != nil {
		t.Fatal(out, err)
	}
}

func play(c *tasks.Claimed) worktest.Result {
	switch c.Spec.Input {
	case "fail":
		return worktest.Fail(c)
	case "lines":
		return worktest.Result{Output: strings.Repeat("line\n", 150)}
	case "again":
		if c.Task.Round == 0 {
			return worktest.Fail(c)
		}
	}
	return worktest.Result{Output: "x", Overdue: c.Spec.Input == "slow", Lost: c.Spec.Input == "lost"}
}

func archiveTask(t *testing.T, s *store.Store, id int64) {
	t.Helper()
	task, err := s.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	move, err := statemachine.Decide(&task.Task,
		statemachine.Occurrence{Event: statemachine.Archive, Actor: statemachine.Manager}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := storetest.Apply(t.Context(), s, tasks.Commit{Move: move, Writer: "m"}); err != nil || out[0].Err != nil {
		t.Fatal(out, err)
	}
}
