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

// What a job waits for is recomputed: as many plans as will tell it of their end.
func TestJobsThatWait(t *testing.T) {
	t.Parallel()
	for want, commands := range map[string][][]string{
		"":                                {{"PING"}},
		"is held for 2 plans, and 1 will": {{"HDEL", "plan:1", "before"}, {"HSET", "plan:2", "before", "33:"}, {"HSET", "plan:2", "state", "completed", "left", "0", "ended", "1"}},
		"is held for 1 plans, and 2 will": {{"HSET", "plan:3", "awaits", "1"}},
		"is held for 0 plans, and 2 will": {{"HDEL", "plan:3", "awaits"}},
	} {
		for _, command := range commands {
			t.Run(strings.Join(command, " "), func(t *testing.T) {
				t.Parallel()
				ns := redistest.Namespace(t)
				s, srv := worktest.Open(t, ns), redistest.Shared(t)
				for i, spec := range []task.PlanSpec{{}, {}, {After: []task.PlanNeed{{Plan: 1}, {Plan: 2, On: task.NeedsAny}}}} {
					spec.Job, spec.RequestKey = true, string(rune('a'+i))
					id, err := s.NewPlan(t.Context(), spec)
					if err == nil {
						_, err = addTo(t.Context(), s, id, spec.RequestKey, storetest.Define())
					}
					if err == nil {
						_, err = s.SteerPlan(t.Context(), id, task.PlanReady, "")
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				args := []string{command[0]}
				for i, arg := range command[1:] {
					if i == 0 {
						arg = ns + ":" + arg
					}
					args = append(args, arg)
				}
				srv.Do(t, args...)
				r, err := verify(t, s)
				if err != nil {
					t.Fatal(err)
				}
				said := slices.ContainsFunc(r.Violations, func(v Violation) bool { return strings.Contains(v.Text, "job j3 "+want) })
				if want == "" && !r.OK() || want != "" && !said {
					t.Errorf("%+v", r.Violations)
				}
			})
		}
	}
}

// A plan that is opened again after its end has told those that wait: they do not wait for it any more, and nothing is wrong.
func TestJobsWaitForAnEndOnce(t *testing.T) {
	t.Parallel()
	s := worktest.Open(t, redistest.Namespace(t))
	waiting := task.PlanSpec{After: []task.PlanNeed{{Plan: 1, On: task.NeedsAny}, {Plan: 2, On: task.NeedsAny}}}
	for i, spec := range []task.PlanSpec{{}, {}, waiting} {
		spec.Job, spec.RequestKey = true, string(rune('a'+i))
		id, err := s.NewPlan(t.Context(), spec)
		if err == nil {
			_, err = addTo(t.Context(), s, id, spec.RequestKey, storetest.Define())
		}
		if err == nil && id != 2 {
			_, err = s.SteerPlan(t.Context(), id, task.PlanReady, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	doPlans(t, s)
	worktest.Drain(t, s, worktest.Fail)
	if p, err := s.Plan(t.Context(), 1); err != nil || p.State != task.PlanFailed {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := addTo(t.Context(), s, 1, "again", task.Definition{RetryOf: 1}); err != nil {
		t.Fatal(err)
	}
	if r, err := verify(t, s); err != nil || !r.OK() {
		t.Errorf("%+v, %v", r.Violations, err)
	}
}
