package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// planned opens tasks in a plan; each needs what is given.
func planned(t *testing.T, sp *storetest.Space, plan task.PlanID, needs ...[]task.Need) []int64 {
	t.Helper()
	specs := make([]task.Definition, len(needs))
	for i := range needs {
		specs[i] = storetest.Spec()
		specs[i].Needs = needs[i]
	}
	key := "after " + sp.Raw.Get(t.Context(), sp.Key("task_id")).Val()
	ids, err := sp.Store.Open(t.Context(), tasks.OpenRequest{Key: key, Specs: specs, Plan: plan})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func newPlan(t *testing.T, sp *storetest.Space, on task.OnFailure) task.PlanID {
	t.Helper()
	key := "after " + sp.Raw.Get(t.Context(), sp.Key("plan_id")).Val()
	id, err := sp.Store.NewPlan(t.Context(), task.PlanSpec{RequestKey: key, Name: "p", OnFailure: on})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func at(i int) task.Need { return task.Need{Index: i} }

// P03, P04 and P05 as far as Redis goes.
func TestPlanIsReleased(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	plan := newPlan(t, sp, "")
	ids := planned(t, sp, plan, nil, []task.Need{at(0)}, []task.Need{at(0), at(0)}, []task.Need{at(1), at(2)})
	checkStates(t, sp, ids, statemachine.Blocked, statemachine.Blocked, statemachine.Blocked, statemachine.Blocked)
	drainAll(t, sp)
	checkStates(t, sp, ids, statemachine.Blocked, statemachine.Blocked, statemachine.Blocked, statemachine.Blocked)
	steer(t, sp, plan, task.PlanReady)
	drainAll(t, sp)
	checkStates(t, sp, ids, statemachine.Open, statemachine.Blocked, statemachine.Blocked, statemachine.Blocked)
	c := newCrew(sp)
	c.end(t, ids[0], "one\n", "")
	drainAll(t, sp)
	checkStates(t, sp, ids, statemachine.Succeeded, statemachine.Open, statemachine.Open, statemachine.Blocked)
	c.end(t, ids[2], "out\n", "")
	c.end(t, ids[1], "out\n", "")
	drainAll(t, sp)
	c.end(t, ids[3], "out\n", "")
	p, err := sp.Store.Plan(t.Context(), plan)
	if err != nil || p.State != task.PlanCompleted || p.Total != 4 || p.Left != 0 || p.Ended[statemachine.Succeeded] != 4 || p.Over.IsZero() {
		t.Errorf("plan %+v, error %v", p, err)
	}
	if _, err := sp.Store.OpenAll(t.Context(), tasks.OpenRequest{Key: "late", Specs: []task.Definition{storetest.Spec()}, Plan: plan}); !errors.Is(err, task.ErrPlanState) {
		t.Errorf("added to a completed plan: %v", err)
	}
}

func steer(t *testing.T, sp *storetest.Space, plan task.PlanID, to task.PlanState) {
	t.Helper()
	if _, err := sp.Store.SteerPlan(t.Context(), plan, to, ""); err != nil {
		t.Fatal(err)
	}
}

func checkStates(t *testing.T, sp *storetest.Space, ids []int64, want ...statemachine.State) {
	t.Helper()
	for i, state := range want {
		if got := sp.Task(t, ids[i]).State; got != state {
			t.Errorf("task %d is %s, want %s", ids[i], got, state)
		}
	}
}

// crew runs tasks as workers and servers do.
type crew struct {
	sp   *storetest.Space
	held map[int64]tasks.Claimed
}

func newCrew(sp *storetest.Space) *crew { return &crew{sp: sp, held: map[int64]tasks.Claimed{}} }

// end runs a task that is open to its end; with an error text it fails.
func (c *crew) end(t *testing.T, id int64, output, errText string) {
	t.Helper()
	for _, got := range c.sp.Claim(t, "w", 100) {
		c.held[got.Task.ID] = got
	}
	task, ok := c.held[id]
	if !ok {
		t.Fatalf("task %d cannot be claimed", id)
	}
	delete(c.held, id)
	if out := c.sp.Report(t, &task, output, errText); out.Err != nil {
		t.Fatal(out.Err)
	}
	must(t, c.sp, id, statemachine.Server, statemachine.Settle)
}

// drainAll does what servers do for plans.
func drainAll(t *testing.T, sp *storetest.Space) {
	t.Helper()
	for storetest.AdvancePlans(t, sp.Store, 2, true) {
	}
}

// A task that fails dooms those that need it, and theirs; the cause is the first one.
// What was to run only on a failure runs, and is skipped otherwise.
func TestPlanFails(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	plan := newPlan(t, sp, task.FailureCancels)
	ids := planned(t, sp, plan,
		nil,                                  // 0 fails
		[]task.Need{at(0)},                   // 1 is doomed
		[]task.Need{at(1)},                   // 2 too
		[]task.Need{{On: task.NeedsAny}},     // 3 runs
		[]task.Need{{On: task.NeedsFailure}}, // 4 runs
		nil,                                  // 5 succeeds
		[]task.Need{{Index: 5, On: task.NeedsFailure}}, // 6 is skipped
		[]task.Need{at(6)}, // 7 too
	)
	steer(t, sp, plan, task.PlanReady)
	drainAll(t, sp)
	c := newCrew(sp)
	c.end(t, ids[0], "", "no")
	drainAll(t, sp)
	checkStates(t, sp, ids, statemachine.Failed, statemachine.Cancelled, statemachine.Cancelled, statemachine.Open, statemachine.Open)
	for _, id := range ids[1:3] {
		if cause := sp.Task(t, id).Fields["doomed_by"]; cause != "1" {
			t.Errorf("task %d is doomed by %q, want 1", id, cause)
		}
	}
	for _, i := range []int{3, 4, 5} {
		c.end(t, ids[i], "", "")
	}
	drainAll(t, sp)
	checkStates(t, sp, ids[6:], statemachine.Cancelled, statemachine.Cancelled)
	p, err := sp.Store.Plan(t.Context(), plan)
	if err != nil || p.State != task.PlanFailed || p.Skipped != 2 || p.Ended[statemachine.Cancelled] != 2 || p.Left != 0 {
		t.Errorf("plan %+v, error %v", p, err)
	}
}

// Skipped tasks alone are no failure.
func TestPlanSkips(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	plan := newPlan(t, sp, "")
	ids := planned(t, sp, plan, nil, []task.Need{{On: task.NeedsFailure}})
	steer(t, sp, plan, task.PlanReady)
	drainAll(t, sp)
	newCrew(sp).end(t, ids[0], "", "")
	drainAll(t, sp)
	if p, err := sp.Store.Plan(t.Context(), plan); err != nil || p.State != task.PlanCompleted {
		t.Errorf("plan %+v, error %v", p, err)
	}
}

// A plan that holds goes on with the retry of what failed: it feeds those that wait.
func TestPlanHolds(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	plan := newPlan(t, sp, task.FailureHolds)
	ids := planned(t, sp, plan, nil, []task.Need{at(0)}, []task.Need{{On: task.NeedsAny}}, nil)
	steer(t, sp, plan, task.PlanReady)
	drainAll(t, sp)
	c := newCrew(sp)
	c.end(t, ids[0], "", "no")
	retry := func() (int64, error) {
		spec := storetest.Spec()
		spec.RetryOf = ids[0]
		opened, err := sp.Store.OpenAll(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Plan: plan, Specs: []task.Definition{spec}})
		if err != nil {
			return 0, err
		}
		return opened[0].ID, nil
	}
	if _, err := retry(); !tasks.IsBusy(err) {
		t.Errorf("retried while its dependants are told: %v", err)
	}
	drainAll(t, sp)
	p, err := sp.Store.Plan(t.Context(), plan)
	if err != nil || p.State != task.PlanHeld || p.HeldBy != "1" {
		t.Fatalf("plan %+v, error %v", p, err)
	}
	checkStates(t, sp, ids, statemachine.Failed, statemachine.Blocked, statemachine.Blocked, statemachine.Running)
	again, err := retry()
	if err != nil {
		t.Fatal(err)
	}
	drainAll(t, sp)
	checkStates(t, sp, append(ids, again), statemachine.Failed, statemachine.Blocked, statemachine.Open, statemachine.Running, statemachine.Open)
	c.end(t, again, "late\n", "")
	drainAll(t, sp)
	checkStates(t, sp, ids[1:2], statemachine.Open)
	results, err := sp.Store.Results(t.Context(), []int64{ids[0]})
	if err != nil || results[0] != (task.Result{Task: again, End: statemachine.Succeeded, Text: "late"}) {
		t.Errorf("results %+v, error %v", results, err)
	}
	for _, id := range ids[1:] {
		c.end(t, id, "", "")
	}
	if p, err := sp.Store.Plan(t.Context(), plan); err != nil || p.State != task.PlanCompleted || p.Total != 4 {
		t.Errorf("plan %+v, error %v", p, err)
	}
}

// Who needs a task that is repeated in the same request waits for its retry; what has not ended cannot be repeated.
func TestRetryWithNeeds(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	plan := newPlan(t, sp, task.FailureHolds)
	ids := planned(t, sp, plan, nil, nil)
	steer(t, sp, plan, task.PlanReady)
	drainAll(t, sp)
	c := newCrew(sp)
	c.end(t, ids[0], "", "no")
	drainAll(t, sp)
	again, after, alive := storetest.Spec(), storetest.Spec(), storetest.Spec()
	again.RetryOf, after.Needs, alive.RetryOf = ids[0], []task.Need{{Task: ids[0]}}, ids[1]
	open := func(specs ...task.Definition) ([]int64, error) {
		return sp.Store.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Plan: plan, Specs: specs})
	}
	var need *tasks.NeedError
	if _, err := open(alive); !errors.As(err, &need) || need.Reason != tasks.NeedAlive {
		t.Errorf("repeated a task that runs: %v", err)
	}
	more, err := open(again, after)
	if err != nil {
		t.Fatal(err)
	}
	drainAll(t, sp)
	checkStates(t, sp, more, statemachine.Open, statemachine.Blocked)
	c.end(t, more[0], "", "")
	drainAll(t, sp)
	checkStates(t, sp, more, statemachine.Succeeded, statemachine.Open)
}

// A result that has left Redis cannot be needed any more, and the error says so.
func TestPurgedTaskIsNeeded(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	plan := newPlan(t, sp, "")
	ids := planned(t, sp, plan, nil, nil)
	steer(t, sp, plan, task.PlanReady)
	drainAll(t, sp)
	c := newCrew(sp)
	c.end(t, ids[0], "", "")
	c.end(t, ids[1], "", "no")
	must(t, sp, ids[0], statemachine.Manager, statemachine.Archive)
	if answers := purge(t, sp, ids[0]); answers[0] != upkeep.PurgeDone {
		t.Fatalf("purged: %v", answers)
	}
	spec := storetest.Spec()
	spec.RetryOf, spec.Needs = ids[1], []task.Need{{Task: ids[0]}}
	_, err := sp.Store.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Plan: plan, Specs: []task.Definition{spec}})
	var need *tasks.NeedError
	if !errors.As(err, &need) || need.Reason != tasks.NeedPurged || !strings.Contains(err.Error(), "archive_retention") {
		t.Errorf("needed a purged task: %v", err)
	}
}

// With on_failure = continue a failure is an end like any other.
func TestPlanContinues(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	plan := newPlan(t, sp, task.FailureContinues)
	ids := planned(t, sp, plan, nil, []task.Need{at(0)})
	steer(t, sp, plan, task.PlanReady)
	drainAll(t, sp)
	c := newCrew(sp)
	c.end(t, ids[0], "", "no")
	drainAll(t, sp)
	c.end(t, ids[1], "", "")
	if p, err := sp.Store.Plan(t.Context(), plan); err != nil || p.State != task.PlanFailed {
		t.Errorf("plan %+v, error %v", p, err)
	}
}

// P10 to P12: what is added to a plan that runs, and what cannot be.
func TestPlanGrows(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	plan, other := newPlan(t, sp, ""), newPlan(t, sp, "")
	ids := planned(t, sp, plan, nil, nil)
	stranger := planned(t, sp, other, nil)[0]
	alone := sp.Open(t, storetest.Spec())[0]
	steer(t, sp, plan, task.PlanReady)
	drainAll(t, sp)
	c := newCrew(sp)
	c.end(t, ids[0], "", "")
	grown := planned(t, sp, plan, []task.Need{{Task: ids[0]}}, []task.Need{{Task: ids[0]}, at(0)}, []task.Need{{Task: ids[1]}})
	checkStates(t, sp, grown, statemachine.Open, statemachine.Blocked, statemachine.Blocked)
	for _, bad := range []struct {
		needs  []task.Need
		reason string
	}{
		{[]task.Need{{Task: stranger}}, tasks.NeedForeign},
		{[]task.Need{{Task: alone}}, tasks.NeedForeign},
		{[]task.Need{{Task: 999}}, tasks.NeedMissing},
		{[]task.Need{at(0)}, ""},                                             // itself
		{[]task.Need{{Task: ids[0]}, {Task: ids[0], On: task.NeedsAny}}, ""}, // twice, and not the same
	} {
		spec := storetest.Spec()
		spec.Needs = bad.needs
		last, _ := sp.Store.LastID(t.Context())
		_, err := sp.Store.OpenAll(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Plan: plan, Specs: []task.Definition{spec}})
		var need *tasks.NeedError
		var field *statemachine.FieldError
		if bad.reason != "" && (!errors.As(err, &need) || need.Reason != bad.reason) || bad.reason == "" && !errors.As(err, &field) {
			t.Errorf("%v: %v", bad.needs, err)
		}
		if now, _ := sp.Store.LastID(t.Context()); now != last {
			t.Errorf("%v: a task was opened", bad.needs)
		}
	}
	spec := storetest.Spec()
	spec.Needs = []task.Need{{Task: alone}}
	if _, err := sp.Store.OpenAll(t.Context(), tasks.OpenRequest{Key: "x", Specs: []task.Definition{spec}}); err == nil {
		t.Error("a task of no plan needs another one")
	}
	if _, err := sp.Store.OpenAll(t.Context(), tasks.OpenRequest{Key: "y", Plan: 99, Specs: []task.Definition{storetest.Spec()}}); !errors.Is(err, task.ErrNoPlan) {
		t.Errorf("opened in a plan that is not there: %v", err)
	}
}

// What was cut is no result.
func TestCutResult(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	plan := newPlan(t, sp, "")
	ids := planned(t, sp, plan, nil, nil)
	steer(t, sp, plan, task.PlanReady)
	drainAll(t, sp)
	newCrew(sp).end(t, ids[0], "cut", "")
	sp.Raw.HSet(t.Context(), sp.Key("task:1"), "0:output_bytes", 99)
	spec := storetest.Spec()
	spec.Needs = []task.Need{{Task: ids[0]}}
	_, err := sp.Store.OpenAll(t.Context(), tasks.OpenRequest{Key: "k", Plan: plan, Specs: []task.Definition{spec}})
	var need *tasks.NeedError
	if !errors.As(err, &need) || need.Reason != tasks.NeedCut {
		t.Errorf("error %v", err)
	}
	if r, err := sp.Store.Results(t.Context(), ids[:1]); err != nil || !r[0].Cut {
		t.Errorf("results %+v, error %v", r, err)
	}
	sp.Raw.HSet(t.Context(), sp.Key("task:1"), "0:result", "short")
	if r, err := sp.Store.Results(t.Context(), ids[:1]); err != nil || r[0].Cut || r[0].Text != "short" {
		t.Errorf("results %+v, error %v", r, err)
	}
	if _, err := sp.Store.OpenAll(t.Context(), tasks.OpenRequest{Key: "k2", Plan: plan, Specs: []task.Definition{spec}}); err != nil {
		t.Errorf("with a result of its own: %v", err)
	}
}

// A held plan starts nothing more; what is put aside meanwhile goes on with it.
func TestPlanIsHeld(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	plan := newPlan(t, sp, "")
	ids := planned(t, sp, plan, nil, nil, []task.Need{at(0)})
	steer(t, sp, plan, task.PlanReady)
	drainAll(t, sp)
	c := newCrew(sp)
	steer(t, sp, plan, task.PlanHeld)
	must(t, sp, ids[1], statemachine.Manager, statemachine.Hold)
	c.end(t, ids[0], "", "")
	drainAll(t, sp)
	checkStates(t, sp, ids, statemachine.Succeeded, statemachine.Blocked, statemachine.Blocked)
	steer(t, sp, plan, task.PlanReady)
	drainAll(t, sp)
	checkStates(t, sp, ids, statemachine.Succeeded, statemachine.Open, statemachine.Open)
}

// What a server has decided to open stays when its plan was held meanwhile.
func TestOpenedInHeldPlan(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	plan := newPlan(t, sp, "")
	id := planned(t, sp, plan, nil)[0]
	steer(t, sp, plan, task.PlanReady)
	freed, now, err := sp.Store.FreedTasks(t.Context(), plan, 0, 9)
	if err != nil || len(freed) != 1 {
		t.Fatalf("freed %+v, error %v", freed, err)
	}
	unblock, err := statemachine.Decide(&freed[0].Task.Task, statemachine.Occurrence{Event: statemachine.Unblock, Actor: statemachine.Server}, now)
	if err != nil {
		t.Fatal(err)
	}
	steer(t, sp, plan, task.PlanHeld)
	out, err := sp.Store.Apply(t.Context(), tasks.Commit{Move: unblock, Writer: "s"})
	if err != nil || !errors.Is(out[0].Err, statemachine.ErrConflict) {
		t.Errorf("%+v, error %v; want a conflict", out, err)
	}
	steer(t, sp, plan, task.PlanReady)
	drainAll(t, sp)
	checkStates(t, sp, []int64{id}, statemachine.Open)
}
