package why_test

import (
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/ops/why"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// planned is a blocked task of plan 3.
func planned(change ...func(*why.Situation)) why.Situation {
	return openTask(append([]func(*why.Situation){func(s *why.Situation) {
		s.Task.State, s.Record.Plan, s.Plan = sm.Blocked, 3, task.Plan{State: task.PlanReady}
	}}, change...)...)
}

// doomed says that the task never runs because of task 5.
func doomed(by task.Task) func(*why.Situation) {
	return func(s *why.Situation) { s.Record.DoomedBy, s.Cause = 5, &by }
}

func skipped(s *why.Situation) { s.Task.State, s.Record.Skipped = sm.Cancelled, true }

func needs(n int) (list []why.Need) {
	states := []sm.State{sm.Running, sm.Open, sm.Failed, sm.Succeeded, ""}
	on := []task.When{task.NeedsSuccess, task.NeedsAny, task.NeedsSuccess, task.NeedsSuccess, task.NeedsFailure}
	for i := range n {
		list = append(list, why.Need{ID: int64(11 + i), State: states[i%5], On: on[i%5]})
	}
	return list
}

func TestPlanned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s    why.Situation
		want []string
	}{
		"needs": {planned(func(s *why.Situation) { s.Needs = needs(5) }), []string{"needs! waits for 5 tasks: 11 (running), 12 (open, its end is enough), " +
			"13 (failed, to be retried), 14 (succeeded, a server is to tell it), 15 (there is no record of it) => task 7 needs=\n",
			"no_worker! once released: "}},
		"many": {planned(func(s *why.Situation) { s.Needs = needs(12) }), []string{"needs! waits for 12 tasks: 11 (running), ", "18 (failed, to be retried) and 4 more => task 7"}},
		"steps": {planned(func(s *why.Situation) {
			s.Needs = []why.Need{{ID: 4, Step: "count[2]", State: sm.Open, On: "success"}, {ID: 5, State: sm.Open, On: "success"}}
		}), []string{"needs! waits for 2 tasks: 4 count[2] (open), 5 (open) => task 7"}},
		"one": {planned(func(s *why.Situation) { s.Needs = []why.Need{{ID: 4, State: sm.Blocked, On: "failure"}} }),
			[]string{"needs! waits for 1 task: 4 (blocked, must not succeed) => "}},
		"building": {planned(func(s *why.Situation) { s.Plan.State, s.Needs = task.PlanBuilding, needs(1) }),
			[]string{"plan! plan 3 is being built: nothing of it runs before it is marked ready => plan 3 ready=true\nneeds! waits for 1 task"}},
		"held":      {planned(func(s *why.Situation) { s.Plan.State, s.Plan.HeldBy = task.PlanHeld, "ann: no disk" }), []string{"plan! plan 3 is held by ann: no disk => plan 3 hold=\n"}},
		"after j2":  {planned(func(s *why.Situation) { s.Plan.State, s.Plan.HeldBy = task.PlanHeld, "job j2" }), []string{"plan! job j3 waits for the end of job j2 => plan 3 after=j2\n"}},
		"held by 5": {planned(func(s *why.Situation) { s.Plan.State, s.Plan.HeldBy = task.PlanHeld, "5" }), []string{"plan! plan 3 is held, because task 5 did not succeed => plan 3 retry=5"}},
		"held by load": {planned(func(s *why.Situation) {
			s.Plan.State, s.Plan.HeldBy, s.FailedStep = task.PlanHeld, "5", "load"
		}), []string{"plan! plan 3 is held, because task 5 (load) did not succeed => plan 3 retry=5"}},
		"cancelled": {planned(func(s *why.Situation) { s.Plan.State = task.PlanCancelled }), []string{"plan! plan 3 is cancelled: nothing more of it runs => plan 3 submit="}},
		"held in a job": {planned(func(s *why.Situation) { s.HandHeld, s.Plan.State, s.Plan.Job = true, task.PlanBuilding, true }, logged("held by ann")),
			[]string{"held! held by ann since", "=> task 7 hold=\nno_worker! once released"}},
		"held by hand": {planned(func(s *why.Situation) { s.HandHeld = true }, logged("held by ann")), []string{"held! held by ann since"}},
		"free":         {planned(), []string{"server! plan 3 lets it run now: it waits for a server to open it: is one running? => task 7 listed=true"}},
		"doomed": {planned(doomed(task.Task{State: sm.Failed})),
			[]string{"doomed! task 5, which it needs, did not succeed: a server will cancel it => plan 3 retry=5\ncause task 5 ended failed\n"}},
		"doomed by a step": {planned(doomed(task.Task{State: sm.Failed, Spec: task.Spec{Step: "load"}})),
			[]string{"doomed! task 5 (load), which it needs, did not succeed: a server", "\ncause task 5 (load) ended failed\n"}},
		"skipped for a step": {planned(doomed(task.Task{Spec: task.Spec{Step: "load"}}), skipped), []string{"skipped: it was to run only if task 5 (load) did not succeed\ncause there is no record of how task 5 (load) ended\n"}},
		"cancelled for another": {planned(doomed(task.Task{State: sm.Failed, Round: 2, Rounds: []task.Round{{
			Number: 2, Worker: "w1", Class: sm.ClassProgram, ExitCode: new(3), Error: "no disk", Stamps: map[string]time.Time{"running": time.Unix(5, 0)},
		}}}), func(s *why.Situation) { s.Task.State, s.Record.CancelReason = sm.Cancelled, "not said again" }), []string{"outcome cancelled: task 5, which it needs, did not succeed\ncause task 5 ended failed: round 2 of worker w1 failed, class program, exit code 3: no disk\n"}},
		"skipped":            {planned(doomed(task.Task{State: sm.Succeeded, Rounds: []task.Round{{Stamps: map[string]time.Time{"running": time.Unix(5, 0)}}}}), skipped), []string{"outcome cancelled: skipped: it was to run only if task 5 did not succeed\ncause task 5 ended succeeded\n"}},
		"cause gone":         {planned(func(s *why.Situation) { s.Task.State, s.Record.DoomedBy = sm.Cancelled, 5 }), []string{"cause there is no record of how task 5 ended"}},
		"called off by hand": {planned(func(s *why.Situation) { s.Task.State = sm.Cancelled }, logged("cancelled by ann")), []string{"outcome cancelled: called off by ann\narchived"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			explain(t, c.s, c.want...)
		})
	}
}
