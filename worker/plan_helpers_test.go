package worker

import (
	"slices"
	"testing"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// planned opens a task in a plan, which may be ready.
func (s *site) planned(t *testing.T, plan task.PlanID, change ...func(*task.Definition)) int64 {
	t.Helper()
	ids, err := s.Store.Open(t.Context(), tasks.OpenRequest{
		Key: conn.NewToken(), Plan: plan, Specs: []task.Definition{storetest.Spec(change...)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids[0]
}

// plan makes a plan; ready lets it run.
func (s *site) plan(t *testing.T) (plan task.PlanID, ready func()) {
	t.Helper()
	plan, err := s.Store.NewPlan(t.Context(), task.PlanSpec{RequestKey: conn.NewToken()})
	if err != nil {
		t.Fatal(err)
	}
	return plan, func() {
		t.Helper()
		if _, err := s.Store.SteerPlan(t.Context(), plan, task.PlanReady, "test"); err != nil {
			t.Fatal(err)
		}
	}
}

// needs makes a task need others.
func needs(ids ...int64) func(*task.Definition) {
	return func(sp *task.Definition) {
		for _, id := range ids {
			sp.Needs = append(sp.Needs, task.Need{Task: id})
		}
	}
}

// files passes results in files only.
func files(sp *task.Definition) { storetest.Set(sp, "args", task.ArgsFiles) }

// finish does the work of a server, for plans too, until the task is in one of the
// states.
func (s *site) finish(t *testing.T, id int64, states ...sm.State) *tasks.TaskHeader {
	t.Helper()
	var task *tasks.TaskHeader
	wait.Eventually(t, 2*patience, func() bool {
		s.serve(t)
		s.drainPlans(t)
		task = s.Task(t, id)
		return slices.Contains(states, task.State)
	}, "task %d is not %v", id, states)
	return task
}

// drainPlans is what one pass of a server does for plans.
func (s *site) drainPlans(t *testing.T) { t.Helper(); storetest.AdvancePlans(t, s.Store, 100, true) }
