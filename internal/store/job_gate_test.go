package store_test

import (
	"fmt"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A call that finds damaged counts opens its tasks nevertheless, and does not end half way.
func TestDamagedCountsOfAJob(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	id, _ := newJob(t, sp, 1)
	sp.Raw.HSet(t.Context(), sp.Key(fmt.Sprint("plan:", id)), "total", "x", "left", "")
	addToJob(t, sp, id, 2)
	jobIs(t, sp, id, task.PlanBuilding, 2, 2, endings{})
	sameStates(t, sp, endings{statemachine.Open: 3})
}

// A job of which a task is left is not gone, though as many were purged as it counts: one of these was retried.
func TestPurgedAndRetriedInAJob(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	id, ids := newJob(t, sp, 1)
	finish(t, sp, sp.Claim(t, "w", 1), ids[0])
	settleAll(t, sp)
	again := storetest.Spec()
	again.RetryOf = ids[0]
	if _, err := sp.Store.Open(t.Context(), tasks.OpenRequest{Key: "again", Specs: []task.Definition{again}, Plan: id}); err != nil {
		t.Fatal(err)
	}
	sp.Raw.HSet(t.Context(), sp.Key(fmt.Sprint("plan:", id)), "purged", "1")
	ready(t, sp, id)
	jobIs(t, sp, id, task.PlanReady, 1, 1, endings{})
}

// afterOne makes a job that waits for another one, of n tasks, which is still being built.
func afterOne(t *testing.T, sp *storetest.Space, n int) (first, second task.PlanID) {
	t.Helper()
	first, err := sp.Store.NewPlan(t.Context(), task.PlanSpec{Job: true, RequestKey: "first"})
	if err != nil {
		t.Fatal(err)
	} else if n > 0 {
		addToJob(t, sp, first, n)
	}
	second = addGated(t, sp, task.PlanSpec{After: []task.PlanNeed{{Plan: first}}}, 1)
	ready(t, sp, second)
	jobIs(t, sp, second, task.PlanHeld, 1, 1, endings{})
	return first, second
}

// A job that goes, since it has no tasks, is over for those after it.
func TestJobAfterOneWithoutTasks(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	first, second := afterOne(t, sp, 0)
	ready(t, sp, first)
	jobIs(t, sp, second, task.PlanReady, 1, 1, endings{})
}

func steerBy(t *testing.T, sp *storetest.Space, id task.PlanID, to task.PlanState) {
	t.Helper()
	if state, err := sp.Store.SteerPlan(t.Context(), id, to, "ann"); err != nil || state != to {
		t.Fatalf("job %d is %s, %v, want it %s", id, state, err, to)
	}
}

// A job that waits and is held by a person stays held when its wait is over, and is cancelled if that ends otherwise.
func TestHoldOfAJobThatWaits(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		sp := storetest.New(t)
		first, second := afterOne(t, sp, 1)
		steerBy(t, sp, second, task.PlanHeld)
		ready(t, sp, first)
		if fails {
			finish(t, sp, sp.Claim(t, "w", 1), 1)
			settleAll(t, sp)
			serveJobs(t, sp)
			jobIs(t, sp, second, task.PlanCancelled, 1, 0, endings{statemachine.Cancelled: 1})
			continue
		}
		finish(t, sp, sp.Claim(t, "w", 1))
		jobIs(t, sp, second, task.PlanHeld, 1, 1, endings{})
		steerBy(t, sp, second, task.PlanReady)
		serveJobs(t, sp)
		sameStates(t, sp, endings{statemachine.Archived: 1, statemachine.Open: 1})
	}
}

// A job that a person has let go does not wait any more, also if it is held later.
func TestResumedJobDoesNotWait(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	first, second := afterOne(t, sp, 1)
	steerBy(t, sp, second, task.PlanReady)
	steerBy(t, sp, second, task.PlanHeld)
	ready(t, sp, first)
	finish(t, sp, sp.Claim(t, "w", 1), 1)
	settleAll(t, sp)
	jobIs(t, sp, second, task.PlanHeld, 1, 1, endings{})
}
