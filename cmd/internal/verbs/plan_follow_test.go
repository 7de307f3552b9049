package verbs

import (
	"cmp"
	"regexp"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/ops/planview"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// session is one as a verb has it.
func (b *bench) session() *session {
	b.t.Helper()
	return &session{store: b.store, manager: manager.New(b.site(), "tdf-manager", manager.Options{})}
}

func follow(t *testing.T, s *session, plan task.PlanID) *planview.Follower {
	t.Helper()
	f, err := s.view(plan).Follow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// again looks once more, as the display does.
func again(t *testing.T, f *planview.Follower, s *session, plan task.PlanID) *outlook {
	t.Helper()
	p, err := s.manager.Plan(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Look(t.Context(), p.Left); err != nil {
		t.Fatal(err)
	}
	return &outlook{f.Outlook(p.OnFailure)}
}

// agrees compares what is known with what stands in Redis.
func agrees(t *testing.T, f *planview.Follower, s *session, plan task.PlanID) {
	t.Helper()
	all, err := s.view(plan).Tasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sortID := func(list []*planview.Task) []*planview.Task {
		return slices.SortedFunc(slices.Values(list), func(a, b *planview.Task) int { return cmp.Compare(a.ID, b.ID) })
	}
	stamps := gocmp.Comparer(func(a, b statemachine.Time) bool { // an event is a little later than the stamp of its script
		return (a == 0) == (b == 0) && max(a-b, b-a) < 60*statemachine.Time(statemachine.Second)
	})
	if diff := gocmp.Diff(sortID(all), sortID(f.Tasks()), stamps); diff != "" {
		t.Errorf("-in Redis +known:\n%s", diff)
	}
}

const gated = `defaults: {retry_delay: 0, max_fails: 0}
steps:
  fetch: {program: echo, input: a}
  work: {program: gate, foreach: [a, b, c], needs: fetch}
  join: {program: echo, needs: work}
`

// TestPlanFollow is about a plan that runs, of which only the events are read.
func TestPlanFollow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	crew, s := b.planCrew(), b.session()
	b.must("plan", "submit", planFile(t, gated))
	f := follow(t, s, 1)
	var o *outlook
	wait.Eventually(t, time.Minute, func() bool {
		o = again(t, f, s, 1)
		return o.States[statemachine.Running] == 2 && o.States[statemachine.Open] == 1
	}, "two tasks do not run")
	agrees(t, f, s, 1)
	if o.CriticalPathTime == nil || o.Left == nil || o.ToRun != 4 || o.Slots != 2 || !regexp.MustCompile(` left, critical path: work\[\d\] -> join \(.+\)$`).MatchString(o.String()) {
		t.Errorf("%+v: %s", o, o)
	}
	if got := o.runningSteps(); !regexp.MustCompile(`^work\[\d\] for [^,]+, work\[\d\] for [^,]+$`).MatchString(got) {
		t.Error(got)
	}
	shown := b.must("plan", "show", "1")
	wantText(t, shown, " left\n", "critical path  work[", " -> join (")
	object := b.value(0, "plan", "show", "1").(map[string]any)["estimate"].(map[string]any)
	path := object["critical_path"].([]any)
	if len(path) != 2 || path[1].(map[string]any)["step"] != "join" || object["to_run"] != 4.0 || object["left"] == nil || object["slots"] != 2.0 {
		t.Errorf("%v", object)
	}
	crew.open()
	wait.Eventually(t, time.Minute, func() bool {
		o = again(t, f, s, 1)
		return o.ToRun == 0
	}, "the plan does not end")
	agrees(t, f, s, 1)
	if o.String() != "" || b.value(0, "plan", "show", "1").(map[string]any)["estimate"] != nil {
		t.Errorf("%q is left of a plan that is over", o)
	}
}

// TestPlanFollowRetry is about a plan that grows: the retry takes the place of what it repeats.
func TestPlanFollowRetry(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	crew, s := b.planCrew(), b.session()
	if r := b.run("plan", "run", "-q", planFile(t, broken)); r.code != 1 || r.out != "1\n" || r.err != "" {
		t.Errorf("%+v", r)
	}
	f := follow(t, s, 1)
	if o := again(t, f, s, 1); o.ToRun != 0 {
		t.Errorf("%d are to run of a plan that failed", o.ToRun)
	}
	crew.mended.Store(true)
	b.must("plan", "retry", "1")
	b.planState("1", "completed")
	wait.Eventually(t, time.Minute, func() bool { return again(t, f, s, 1).States[statemachine.Succeeded] == 4 }, "the retries are not seen")
	agrees(t, f, s, 1)
}
