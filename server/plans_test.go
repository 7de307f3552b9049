package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// plan makes a plan that is ready, and returns the ids of its tasks.
func plan(t *testing.T, sp *storetest.Space, on task.OnFailure, needs ...[]task.Need) (plan task.PlanID, ids []int64) {
	t.Helper()
	plan, err := sp.Store.NewPlan(t.Context(), task.PlanSpec{RequestKey: conn.NewToken(), OnFailure: on})
	if err != nil {
		t.Fatal(err)
	}
	specs := make([]task.Definition, len(needs))
	for i := range needs {
		specs[i] = storetest.Spec()
		specs[i].Needs = needs[i]
	}
	if ids, err = sp.Store.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: specs, Plan: plan}); err != nil {
		t.Fatal(err)
	}
	if _, err := sp.Store.SteerPlan(t.Context(), plan, task.PlanReady, ""); err != nil {
		t.Fatal(err)
	}
	return plan, ids
}

// runPlan claims and reports until all tasks of a plan have ended; errText is what a task reports as its error.
func runPlan(t *testing.T, sp *storetest.Space, id task.PlanID, errText func(id int64) string) *task.Plan {
	t.Helper()
	var p *task.Plan
	wait.Eventually(t, 20*time.Second, func() bool {
		for _, c := range sp.Claim(t, "w", 100) {
			if out := sp.Report(t, &c, "out", errText(c.Task.ID)); out.Err != nil {
				t.Fatal(out.Err)
			}
		}
		var err error
		if p, err = sp.Store.Plan(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		return p.State.Terminal()
	}, "the plan is not over")
	return p
}

func well(int64) string { return "" }

// A fan of three hundred, in and out again: two servers at once release each task once.
func TestFan(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	launch(t, sp)
	launch(t, sp)
	const fan = 300
	needs := [][]task.Need{nil}
	last := []task.Need{}
	for i := range fan {
		needs = append(needs, []task.Need{{Index: 0}})
		last = append(last, task.Need{Index: i + 1})
	}
	id, ids := plan(t, sp, "", append(needs, last)...)
	p := runPlan(t, sp, id, well)
	if p.State != task.PlanCompleted || p.Ended[statemachine.Succeeded] != fan+2 || p.Left != 0 {
		t.Errorf("plan %+v", p)
	}
	for _, id := range ids {
		if n := strings.Count(sp.Task(t, id).Fields["log"], "open -> running"); n != 1 {
			t.Errorf("task %d was claimed %d times", id, n)
		}
	}
}

// What can never run is cancelled, and says why.
func TestDoomed(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	launch(t, sp)
	id, ids := plan(t, sp, "", nil, []task.Need{{Index: 0}}, []task.Need{{Index: 1}}, []task.Need{{Index: 0, On: task.NeedsFailure}},
		[]task.Need{{Index: 3, On: task.NeedsFailure}})
	p := runPlan(t, sp, id, func(id int64) string {
		if id == 1 {
			return "no"
		}
		return ""
	})
	if p.State != task.PlanFailed || p.Skipped != 1 {
		t.Errorf("plan %+v", p)
	}
	for i, want := range []string{"", "task 1, which it needs, did not succeed", "task 1, which it needs, did not succeed", "",
		"skipped: it was to run if task 4 did not succeed"} {
		if got := sp.Task(t, ids[i]).Fields["cancel_reason"]; got != want {
			t.Errorf("task %d: cancelled because %q, want %q", ids[i], got, want)
		}
	}
}

// A task that is damaged keeps no other plan from going on.
func TestDamagedInPlan(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	first, ids := plan(t, sp, "", nil, nil)
	sp.Raw.HSet(t.Context(), sp.Key(fmt.Sprint("task:", ids[0])), "timeout", "soon")
	second, _ := plan(t, sp, "", nil, []task.Need{{Index: 0}})
	launch(t, sp, func(o *options) { o.BatchSize = 1 })
	if p := runPlan(t, sp, second, well); p.State != task.PlanCompleted {
		t.Errorf("plan %+v", p)
	}
	p, err := sp.Store.Plan(t.Context(), first)
	if err != nil || p.State != task.PlanReady || p.Left != 1 {
		t.Errorf("plan %+v, error %v; want the damaged task left", p, err)
	}
}
