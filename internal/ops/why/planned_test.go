package why_test

import (
	"testing"

	"github.com/tdf-go/tdf/internal/ops/why"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// planned is a blocked task of plan 3.
func planned(change ...func(*why.Task)) why.Task {
	return openTask(append([]func(*why.Task){func(t *why.Task) {
		t.State, t.Plan = sm.Blocked, why.Plan{ID: 3, State: why.PlanReady}
	}}, change...)...)
}

func needs(n int) (list []why.Need) {
	states := []sm.State{sm.Running, sm.Open, sm.Failed, sm.Succeeded, ""}
	on := []string{"success", "any", "success", "success", "failure"}
	for i := range n {
		list = append(list, why.Need{ID: int64(11 + i), State: states[i%5], On: on[i%5]})
	}
	return list
}

func TestPlanned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		task why.Task
		want []string
	}{
		"needs": {planned(func(t *why.Task) { t.Needs = needs(5) }), []string{"needs! waits for 5 tasks: 11 (running), 12 (open, its end is enough), " +
			"13 (failed, to be retried), 14 (succeeded, a server is to tell it), 15 (there is no record of it) => task 7 needs=\n",
			"no_worker! once released: "}},
		"many": {planned(func(t *why.Task) { t.Needs = needs(12) }), []string{"needs! waits for 12 tasks: 11 (running), ", "18 (failed, to be retried) and 4 more => task 7"}},
		"steps": {planned(func(t *why.Task) {
			t.Needs = []why.Need{{ID: 4, Step: "count[2]", State: sm.Open, On: "success"}, {ID: 5, State: sm.Open, On: "success"}}
		}), []string{"needs! waits for 2 tasks: 4 count[2] (open), 5 (open) => task 7"}},
		"one": {planned(func(t *why.Task) { t.Needs = []why.Need{{ID: 4, State: sm.Blocked, On: "failure"}} }),
			[]string{"needs! waits for 1 task: 4 (blocked, must not succeed) => "}},
		"building": {planned(func(t *why.Task) { t.Plan.State, t.Needs = why.PlanBuilding, needs(1) }),
			[]string{"plan! plan 3 is being built: nothing of it runs before it is marked ready => plan 3 ready=true\nneeds! waits for 1 task"}},
		"held":      {planned(func(t *why.Task) { t.Plan.State, t.Plan.HeldBy = why.PlanHeld, "ann: no disk" }), []string{"plan! plan 3 is held by ann: no disk => plan 3 hold=\n"}},
		"held by 5": {planned(func(t *why.Task) { t.Plan.State, t.Plan.FailedTask = why.PlanHeld, 5 }), []string{"plan! plan 3 is held, because task 5 did not succeed => plan 3 retry=5"}},
		"held by load": {planned(func(t *why.Task) {
			t.Plan.State, t.Plan.FailedTask, t.Plan.FailedStep = why.PlanHeld, 5, "load"
		}), []string{"plan! plan 3 is held, because task 5 (load) did not succeed => plan 3 retry=5"}},
		"cancelled":    {planned(func(t *why.Task) { t.Plan.State = why.PlanCancelled }), []string{"plan! plan 3 is cancelled: nothing more of it runs => plan 3 submit="}},
		"held by hand": {planned(func(t *why.Task) { t.HandHeld, t.HeldBy = true, "ann" }), []string{"held! held by ann since"}},
		"free":         {planned(), []string{"server! plan 3 lets it run now: it waits for a server to open it: is one running? => task 7 listed=true"}},
		"doomed": {planned(func(t *why.Task) { t.Cause = why.Cause{ID: 5, End: sm.Failed} }),
			[]string{"doomed! task 5, which it needs, did not succeed: a server will cancel it => plan 3 retry=5\ncause task 5 ended failed\n"}},
		"doomed by a step": {planned(func(t *why.Task) { t.Cause = why.Cause{ID: 5, Step: "load", End: sm.Failed} }),
			[]string{"doomed! task 5 (load), which it needs, did not succeed: a server", "\ncause task 5 (load) ended failed\n"}},
		"skipped for a step": {planned(func(t *why.Task) {
			t.State, t.Cause = sm.Cancelled, why.Cause{ID: 5, Step: "load", Skipped: true}
		}), []string{"skipped: it was to run only if task 5 (load) did not succeed\ncause there is no record of how task 5 (load) ended\n"}},
		"cancelled for another": {planned(func(t *why.Task) {
			t.State, t.CancelReason = sm.Cancelled, "not said again"
			t.Cause = why.Cause{ID: 5, End: sm.Failed, Round: &task.Round{Number: 2, Worker: "w1", Class: sm.ClassProgram, ExitCode: new(3), Error: "no disk"}}
		}), []string{"outcome cancelled: task 5, which it needs, did not succeed\ncause task 5 ended failed: round 2 of worker w1 failed, class program, exit code 3: no disk\n"}},
		"skipped": {planned(func(t *why.Task) {
			t.State, t.Cause = sm.Cancelled, why.Cause{ID: 5, End: sm.Succeeded, Skipped: true, Round: &task.Round{}}
		}), []string{"outcome cancelled: skipped: it was to run only if task 5 did not succeed\ncause task 5 ended succeeded\n"}},
		"cause gone":         {planned(func(t *why.Task) { t.State, t.Cause = sm.Cancelled, why.Cause{ID: 5} }), []string{"cause there is no record of how task 5 ended"}},
		"called off by hand": {planned(func(t *why.Task) { t.State, t.CancelledBy = sm.Cancelled, "ann" }), []string{"outcome cancelled: called off by ann\narchived"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explain(t, why.Situation{Task: c.task}, c.want...)
		})
	}
}
