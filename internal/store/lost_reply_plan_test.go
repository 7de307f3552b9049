package store_test

import (
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// planLosses are the scenarios of plans; they join scriptLosses.
var planLosses = map[string]map[string]loss{
	"plan": {"new": {call: newPlanCall}},
	"steer": {
		"ready":     {prepare: planBuilt(""), call: steerCall(task.PlanReady)},
		"empty":     {prepare: planEmpty, call: steerCall(task.PlanReady)},
		"hold":      {prepare: planRuns(""), call: steerCall(task.PlanHeld)},
		"cancelled": {prepare: planBuilt(""), call: steerCall(task.PlanCancelled)},
		"growing":   {prepare: planKept, call: steerCall(task.PlanReady)},
		"no growth": {prepare: planKept, call: steerCall(task.PlanCancelled)},
		"after":     {prepare: jobAfter(false), call: readyCall},
		"too late":  {prepare: jobAfter(true), call: readyCall},
	},
	"open": {
		"planned": {prepare: planBuilt(""), call: openInPlanCall(task.Definition{Needs: []task.Need{{Task: 1}}})},
		"grown":   {prepare: planFed(""), call: openInPlanCall(task.Definition{Needs: []task.Need{{Task: 1}}})},
		"retried": {prepare: planStuck, call: openInPlanCall(task.Definition{RetryOf: 1})},
		"lines":   {prepare: planLines(""), call: openLinesCall(2)},
		"in part": {prepare: planLines(""), call: openLinesCall(9)},
		"source":  {prepare: planLines("no"), call: openInPlanCall(task.Definition{RetryOf: 1})},
		"job": {prepare: jobOf(1, task.PlanSpec{}), call: func(t *testing.T, st *store.Store) step {
			t.Helper()
			return func() (any, error) {
				return st.OpenAll(t.Context(), tasks.OpenRequest{Key: "k", Plan: 1, Job: true, Specs: []task.Definition{storetest.Spec()}})
			}
		}},
	},
	"notify": {
		"met":    {prepare: planFed(""), call: releaseCall},
		"doomed": {prepare: planFails(""), call: releaseCall},
		"held":   {prepare: planFails(task.FailureHolds), call: releaseCall},
		"none":   {prepare: planRuns(""), call: releaseCall},
		"several": {prepare: planFedTwice, call: func(t *testing.T, st *store.Store) step {
			t.Helper()
			return func() (any, error) { return st.NotifyDependants(t.Context(), 100, 1, 2) }
		}},
	},
	"freed": {
		"some": {prepare: planReady, call: freedCall},
		"none": {prepare: planRuns(""), call: freedCall},
		"window": {prepare: func(t *testing.T, sp *storetest.Space) {
			t.Helper()
			jobOf(3, task.PlanSpec{Window: 1})(t, sp)
			ready(t, sp, 1)
		}, call: freedCall},
	},
	"retally": {"over": {prepare: jobMiscounted, call: retallyCall}},
	"redrain": {
		"to be moved":    {prepare: planLost(planReady, "ZREM", "freed:1", "1"), call: redrainCall(1)},
		"not to be":      {prepare: planLost(planReady, "ZADD", "freed:1", "2", "2"), call: redrainCall(2)},
		"told of an end": {prepare: planLost(planFed(""), "ZREM", "draining", "t1"), call: redrainCall(1)},
		"plan":           {prepare: planLost(planReady, "ZREM", "draining", "p1"), call: redrainCall(0)},
		"nothing":        {prepare: planBuilt(""), call: redrainCall(1)},
	},
	"growth": {
		"kept": {prepare: planBuilt(""), call: keepGrowthCall},
		"late": {prepare: planRuns(""), call: keepGrowthCall},
	},
	"grown": {
		"look":    {prepare: planSource("", ""), call: grownCall("1", "", false)},
		"missed":  {prepare: planLines(""), call: grownCall("1", "", false)},
		"trouble": {prepare: planLines(""), call: grownCall("2", "too many", false)},
		"fails":   {prepare: planLines("no"), call: grownCall("2", "", false)},
		"empty":   {prepare: planLines(""), call: grownCall("2", "", true)},
		"whole":   {prepare: planOpened, call: grownCall("2", "", false)},
	},
	"first": {
		"said":   {prepare: planBuilt(""), call: firstCall("0a")},
		"asked":  {prepare: planBuilt(""), call: firstCall("")},
		"nobody": {prepare: func(*testing.T, *storetest.Space) {}, call: firstCall("0a")},
	},
	"regrow": {
		"failed": {prepare: planTroubled, call: regrowCall},
	},
	"move": {
		"source ends":  {prepare: planSource("", ""), call: clerkCall(statemachine.Server, statemachine.Settle)},
		"source fails": {prepare: planSource(task.FailureHolds, "no"), call: clerkCall(statemachine.Server, statemachine.Settle)},
		"plan goes on": {prepare: planReported(""), call: clerkCall(statemachine.Server, statemachine.Settle)},
		"plan is over": {prepare: planOfOne, call: clerkCall(statemachine.Server, statemachine.Settle)},
		"freed":        {prepare: planReady, call: clerkCall(statemachine.Server, statemachine.Unblock)},
		"job goes on":  {prepare: jobRuns(2, task.PlanSpec{Window: 1}), call: clerkCall(statemachine.Server, statemachine.Settle)},
		"job is over":  {prepare: jobRuns(1, task.PlanSpec{}), call: clerkCall(statemachine.Server, statemachine.Settle)},
	},
}

// jobOf makes job 1, with that many tasks.
func jobOf(n int, spec task.PlanSpec) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		addGated(t, sp, spec, n)
	}
}

// jobRuns makes job 1, of which what may run at a time was executed.
func jobRuns(n int, spec task.PlanSpec) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		jobOf(n, spec)(t, sp)
		ready(t, sp, 1)
		drainAll(t, sp)
		report(t, sp, "")
	}
}

// jobAfter makes job 1, which comes after job 2, which may be over already, in a way that does not suit.
func jobAfter(over bool) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		addGated(t, sp, task.PlanSpec{After: []task.PlanNeed{{Plan: 2, On: task.NeedsFailure}}}, 1)
		jobOf(1, task.PlanSpec{})(t, sp)
		if over {
			ready(t, sp, 2)
			report(t, sp, "")
			settleAll(t, sp)
		}
	}
}

func newPlanCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) { return st.NewPlan(t.Context(), task.PlanSpec{RequestKey: "k", Name: "n"}) }
}

func steerCall(to task.PlanState) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		return func() (any, error) { return st.SteerPlan(t.Context(), 1, to, "me") }
	}
}

// readyCall is what a submission ends with.
func readyCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) { return st.SteerPlan(t.Context(), 1, task.PlanReady, "") }
}

func openInPlanCall(change task.Definition) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		spec := storetest.Spec()
		spec.Needs, spec.RetryOf = change.Needs, change.RetryOf
		return func() (any, error) {
			return st.OpenAll(t.Context(), tasks.OpenRequest{Key: "k", Plan: 1, Specs: []task.Definition{spec}})
		}
	}
}

func releaseCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) { return st.NotifyDependants(t.Context(), 100, 1) }
}

func freedCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) {
		freed, _, err := st.FreedTasks(t.Context(), 1, 0, 100)
		return freed, err
	}
}

func planEmpty(t *testing.T, sp *storetest.Space) { t.Helper(); newPlan(t, sp, "") }

// planBuilt makes plan 1: task 1, and 2 and 3 that need it.
func planBuilt(on task.OnFailure) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		planned(t, sp, newPlan(t, sp, on), nil, []task.Need{at(0)}, []task.Need{at(0)})
	}
}

func planReady(t *testing.T, sp *storetest.Space) {
	t.Helper()
	planBuilt("")(t, sp)
	steer(t, sp, 1, task.PlanReady)
}

// planRuns has opened task 1, and drained the plan.
func planRuns(on task.OnFailure) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		planBuilt(on)(t, sp)
		steer(t, sp, 1, task.PlanReady)
		drainAll(t, sp)
	}
}

func planReported(errText string) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		planRuns("")(t, sp)
		report(t, sp, errText)
	}
}

func report(t *testing.T, sp *storetest.Space, errText string) {
	t.Helper()
	c, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{
		Worker: "w", Request: "r", Max: 9, Candidates: storetest.Free(task.Bucket{}), // the same in each namespace
	})
	if err != nil || len(c.Tasks) == 0 {
		t.Fatalf("claimed %+v, error %v", c, err)
	}
	for i := range c.Tasks {
		if out := sp.Report(t, &c.Tasks[i], "out\n", errText); out.Err != nil {
			t.Fatal(out.Err)
		}
	}
}

func planOfOne(t *testing.T, sp *storetest.Space) {
	t.Helper()
	planned(t, sp, newPlan(t, sp, ""), nil)
	steer(t, sp, 1, task.PlanReady)
	drainAll(t, sp)
	report(t, sp, "")
}

// planFed has ended task 1 well, planFails has not; nobody has been told.
func planFed(on task.OnFailure) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		planRuns(on)(t, sp)
		report(t, sp, "")
		must(t, sp, 1, statemachine.Server, statemachine.Settle)
	}
}

func planFails(on task.OnFailure) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		planRuns(on)(t, sp)
		report(t, sp, "no")
		must(t, sp, 1, statemachine.Server, statemachine.Settle)
	}
}

// planFedTwice has ended tasks 1 and 2, which 3 needs both.
func planFedTwice(t *testing.T, sp *storetest.Space) {
	t.Helper()
	planned(t, sp, newPlan(t, sp, ""), nil, nil, []task.Need{at(0), at(1)})
	steer(t, sp, 1, task.PlanReady)
	drainAll(t, sp)
	report(t, sp, "")
	for _, id := range []int64{1, 2} {
		must(t, sp, id, statemachine.Server, statemachine.Settle)
	}
}

// planStuck holds because of task 1.
func planStuck(t *testing.T, sp *storetest.Space) {
	t.Helper()
	planFails(task.FailureHolds)(t, sp)
	drainAll(t, sp)
}

// jobMiscounted is a job with a task; retallyCall says that it has ended.
func jobMiscounted(t *testing.T, sp *storetest.Space) {
	t.Helper()
	id, err := sp.Store.NewPlan(t.Context(), task.PlanSpec{Job: true, RequestKey: "k"})
	if err == nil {
		_, err = sp.Store.Open(t.Context(), tasks.OpenRequest{Key: "o", Specs: []task.Definition{storetest.Spec()}, Plan: id, Job: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	ready(t, sp, id)
}

func retallyCall(t *testing.T, st *store.Store) step {
	t.Helper()
	is, err := st.PlanSum(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	want := is.Away()
	return func() (any, error) { return st.Retally(t.Context(), is, &want) }
}
