package manager

import (
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/task"
)

// whyPlan makes a plan: the second task needs the first, the third the second, the fourth any end of the first, and
// the last all twelve that stand before it, which need nothing.
func whyPlan(t *testing.T, m *Manager, on task.OnFailure) (plan task.PlanID, ids []int64) {
	t.Helper()
	plan, err := m.NewPlan(t.Context(), task.PlanSpec{Name: "p", OnFailure: on})
	if err != nil {
		t.Fatal(err)
	}
	need := func(needs ...task.Need) task.Spec {
		return task.Spec{Program: "p", Source: "s", Input: "x", Needs: needs}
	}
	specs := []task.Spec{
		need(), need(task.Need{Index: 0}), need(task.Need{Index: 1}), need(task.Need{Index: 0, On: task.NeedsAny}),
	}
	specs[0].Input, specs[0].Retry.Limit, specs[0].Step = "fail", task.AtMost(0), "load"
	many := need()
	for i := range 12 {
		specs = append(specs, need())
		many.Needs = append(many.Needs, task.Need{Index: 4 + i})
	}
	ids, err = idsOpened(m.SubmitAll(t.Context(), slices.Values(append(specs, many)), InPlan(plan)))
	if err != nil {
		t.Fatal(err)
	}
	return plan, ids
}

// tellPlans does what servers do for plans, once.
func tellPlans(t *testing.T, m *Manager, move bool) {
	t.Helper()
	storetest.AdvancePlans(t, redisOf(m), 100, move)
}

func TestWhyPlanned(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	plan, ids := whyPlan(t, m, task.FailureCancels)
	saysWhy(t, m, ids[0], "plan", "plan 1 is being built", remedy("plan", "1", "ready", "true"))
	if err := m.ReadyPlan(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	saysWhy(t, m, ids[0], "server", "it waits for a server to open it", remedy("task", "1", "listed", "true"))
	saysWhy(t, m, ids[1], "needs", "waits for 1 task: 1 load (blocked)", remedy("task", "2", "needs", ""))
	tellPlans(t, m, true)
	saysWhy(t, m, ids[3], "needs", "1 load (open, its end is enough)", remedy("task", "4", "needs", ""))
	saysWhy(t, m, ids[16], "needs", "waits for 12 tasks: 5 (open), 6 (open), 7 (open), 8 (open), 9 (open), 10 (open), 11 (open), 12 (open) and 4 more",
		remedy("task", "17", "needs", ""))
	if err := m.HoldPlan(t.Context(), plan, ChangeOptions{Reason: "no disk"}); err != nil {
		t.Fatal(err)
	}
	saysWhy(t, m, ids[4], "plan", ": no disk", remedy("plan", "1", "hold", ""))
	if e, err := m.Why(t.Context(), ids[4]); err != nil || len(e) < 2 || e[1].Kind == "held" {
		t.Errorf("%+v, %v: what is held with its plan goes on with it", e, err)
	}
	if err := m.ResumePlan(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	tellPlans(t, m, true)
	if _, err := m.Hold(t.Context(), ids[4:5], ChangeOptions{Reason: "not yet"}); err != nil {
		t.Fatal(err)
	}
	saysWhy(t, m, ids[4], "held", "not yet", remedy("task", "5", "hold", ""))
	worktest.Drain(t, redisOf(m), failFirst)
	saysWhy(t, m, ids[1], "needs", "1 load (failed, to be retried)", remedy("task", "2", "needs", "")) // not told yet
	tellPlans(t, m, false)
	saysWhy(t, m, ids[1], "doomed", "task 1 (load), which it needs, did not succeed", remedy("plan", "1", "retry", "1"))
	for range 3 {
		tellPlans(t, m, true)
	}
	saysWhy(t, m, ids[2], "outcome", "cancelled: task 1 (load), which it needs, did not succeed", Remedy{})
	e, err := m.Why(t.Context(), ids[2])
	if err != nil || e[1].Kind != "cause" || !strings.Contains(e[1].Text, "task 1 (load) ended failed: round 0") || !strings.Contains(e[1].Text, "it broke") {
		t.Errorf("%+v, %v, want the cause", e, err)
	}
}

func failFirst(c *tasks.Claimed) worktest.Result {
	if c.Spec.Input == "fail" {
		return worktest.Fail(c)
	}
	return worktest.Echo(c)
}

// A plan that holds says because of what; the retry is what is waited for then.
func TestWhyPlanHolds(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	plan, ids := whyPlan(t, m, task.FailureHolds)
	if err := m.ReadyPlan(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	tellPlans(t, m, true)
	worktest.Drain(t, redisOf(m), failFirst)
	for range 3 {
		tellPlans(t, m, true)
	}
	saysWhy(t, m, ids[1], "plan", "plan 1 is held, because task 1 (load) did not succeed", remedy("plan", "1", "retry", "1"))
	e, err := m.Why(t.Context(), ids[1])
	if err != nil || e[1].Kind != "needs" || !strings.Contains(e[1].Text, "1 load (failed, to be retried)") {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := m.Retry(t.Context(), ids[:1], RetryOptions{}); err != nil {
		t.Fatal(err)
	}
	saysWhy(t, m, ids[1], "needs", "waits for 1 task: 18 load (open)", remedy("task", "2", "needs", ""))
}
