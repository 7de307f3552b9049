package manager

import (
	"context"
	"strconv"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/task"
)

// mixed has task 1 archived after a failure, 2 failed, 3 succeeded, 4 running, 5
// blocked in queue q, 6 open of program r after a failure, 7 open.
func mixed(t *testing.T) *Manager {
	t.Helper()
	ns := redistest.Namespace(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	broken := func(c *tasks.Claimed) worktest.Result {
		if c.Spec.Input == "ok" {
			return worktest.Result{}
		}
		return worktest.Result{Error: "disk full on " + strconv.FormatInt(c.Task.ID, 10) + "\n"}
	}
	one := func(sp task.Spec) {
		t.Helper()
		if _, err := m.Submit(t.Context(), sp); err != nil {
			t.Fatal(err)
		}
	}
	one(spec())
	worktest.Drain(t, s, broken)
	stopped := Handlers{Unhandled: Archive, Stop: func(context.Context, int) bool { return true }}
	if err := m.Run(t.Context(), stopped); err != nil {
		t.Fatal(err)
	}
	one(spec())
	one(task.Spec{Program: "p", Input: "ok"})
	worktest.Drain(t, s, broken)
	one(spec())
	claim(t, s, 1)
	if _, err := m.AddQueue(t.Context(), task.QueueSpec{Name: "q"}, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	one(task.Spec{Program: "p", Queue: "q", Hold: "x"})
	one(task.Spec{Program: "r", Retry: task.Retry{Limit: task.AtMost(9)}})
	if _, err := worktest.Round(t.Context(), s, broken); err != nil {
		t.Fatal(err)
	}
	one(spec())
	return m
}
