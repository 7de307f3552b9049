package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// planLost prepares a plan, and then takes something from a key, or adds it.
func planLost(prepare func(*testing.T, *storetest.Space), command, key string, args ...string) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		prepare(t, sp)
		words := []any{command, sp.Key(key)}
		for _, a := range args {
			words = append(words, a)
		}
		if err := sp.Raw.Do(t.Context(), words...).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func redrainCall(task int64) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		return done(func() error { return st.Requeue(t.Context(), 1, task) })
	}
}

// What an audit reads of a plan, and what it puts back on the lists of the servers.
func TestPlanIsLookedAt(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	planReady(t, sp)
	look := func(want plans.Planned) {
		t.Helper()
		found, err := sp.Store.Planned(t.Context(), 1, []int64{want.ID}, 2)
		if diff := cmp.Diff([]plans.Planned{want}, found); err != nil || diff != "" {
			t.Errorf("error %v, difference\n%s", err, diff)
		}
	}
	first := plans.Planned{ID: 1, Plan: 1, State: statemachine.Blocked, Feeds: true, Freed: true, Dependants: 2, Names: 1}
	look(first)
	look(plans.Planned{ID: 2, Plan: 1, State: statemachine.Blocked, Needs: []task.Need{{Task: 1, On: task.NeedsSuccess}}, Waits: 1})
	if ids, err := sp.Store.Dependants(t.Context(), 1, false, 0, 9); err != nil || !cmp.Equal(ids, []int64{2, 3}) {
		t.Errorf("dependants %v, error %v", ids, err)
	}
	sum, err := sp.Store.PlanSum(t.Context(), 1)
	if err != nil || sum.Listed != 3 || sum.Freed != 1 || !sum.Draining || sum.State != task.PlanReady {
		t.Errorf("plan %+v, error %v", sum, err)
	}
	planLost(func(*testing.T, *storetest.Space) {}, "DEL", "freed:1")(t, sp)
	if err := sp.Store.Requeue(t.Context(), 1, 1); err != nil {
		t.Fatal(err)
	}
	look(first)
	if ids, err := sp.Store.FreedIDs(t.Context(), 1, 0, 9); err != nil || !cmp.Equal(ids, []int64{1}) {
		t.Errorf("to be moved: %v, error %v", ids, err)
	}
}

// planFully leaves every key of plans behind: one plan whose dependants are being told of a failure, another that
// was held, and one that is built.
func planFully(t *testing.T, sp *storetest.Space) {
	t.Helper()
	holds := newPlan(t, sp, task.FailureHolds)
	ids := planned(t, sp, holds, nil, []task.Need{at(0)}, []task.Need{at(0)}, []task.Need{{On: task.NeedsFailure}})
	steer(t, sp, holds, task.PlanReady)
	drainAll(t, sp)
	newCrew(sp).end(t, ids[0], "", "no")
	if _, err := sp.Store.NotifyDependants(t.Context(), 1, ids[0]); err != nil {
		t.Fatal(err)
	}
	planned(t, sp, newPlan(t, sp, ""), nil, []task.Need{at(0)})
	held := newPlan(t, sp, "")
	planned(t, sp, held, nil)
	steer(t, sp, held, task.PlanReady)
	steer(t, sp, held, task.PlanHeld)
	steer(t, sp, held, task.PlanCancelled)
	grows := newPlan(t, sp, "")
	if err := sp.Store.KeepGrowth(t.Context(), grows, "{}", 1, planned(t, sp, grows, nil)); err != nil {
		t.Fatal(err)
	}
	steer(t, sp, grows, task.PlanReady)
}
