package audit

import (
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/task"
)

// TestSoundJobs: nothing is found of jobs in any situation: that run while they are made, that have a window, full or not, that wait for
// others, were cancelled by one, have a retry, or of which tasks have left Redis.
func TestSoundJobs(t *testing.T) {
	t.Parallel()
	s := worktest.Open(t, redistest.Namespace(t))
	job := func(spec task.PlanSpec, inputs ...string) task.PlanID {
		t.Helper()
		spec.Job, spec.RequestKey = true, strings.Join(inputs, " ") // each has others
		id, err := s.NewPlan(t.Context(), spec)
		var specs []task.Definition
		for _, input := range inputs {
			specs = append(specs, storetest.Define("input", input))
		}
		if _, bad := addTo(t.Context(), s, id, spec.RequestKey, specs...); bad != nil || err != nil {
			t.Fatal(bad, err)
		}
		return id
	}
	sound := func(when string) {
		t.Helper()
		if r, err := verify(t, s); err != nil || !r.OK() {
			t.Errorf("%s: %+v, %v", when, r.Violations, err)
		}
	}
	fails := job(task.PlanSpec{}, "a", "fail")
	window := job(task.PlanSpec{Window: 1}, "a", "fail", "c")
	after := job(task.PlanSpec{After: []task.PlanNeed{{Plan: fails}, {Plan: window, On: task.NeedsAny}}}, "a", "b")
	sound("being made")
	for _, id := range []task.PlanID{after, window, fails} {
		if _, err := s.SteerPlan(t.Context(), id, task.PlanReady, ""); err != nil {
			t.Fatal(err)
		}
		sound("ready")
	}
	for range 4 {
		doPlans(t, s)
		sound("moved")
		worktest.Drain(t, s, play)
		sound("drained")
	}
	doPlans(t, s)
	sound("cancelled")
	for id, state := range map[task.PlanID]task.PlanState{fails: task.PlanFailed, window: task.PlanFailed, after: task.PlanCancelled} {
		if p, err := s.Plan(t.Context(), id); err != nil || p.State != state || p.Left != 0 {
			t.Errorf("%+v, %v, want it %s", p, err, state)
		}
	}
	if _, err := addTo(t.Context(), s, window, "again", task.Definition{RetryOf: 4}); err != nil {
		t.Fatal(err)
	}
	sound("repeated")
	out := []upkeep.Outgoing{}
	for _, id := range []int64{1, 3} { // of one job that is over, and of one that is not
		archiveTask(t, s, id)
		one, err := s.Task(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, upkeep.Outgoing{ID: id, Rev: one.Rev, Outcome: one.Outcome})
	}
	if got, err := s.Purge(t.Context(), out); err != nil || !slices.Equal(got, []upkeep.Purged{upkeep.PurgeDone, upkeep.PurgeDone}) {
		t.Fatal(got, err)
	}
	sound("purged")
	doPlans(t, s)
	sound("opened again")
}
