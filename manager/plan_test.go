package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/server"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// serve runs a server until the test ends or stop is called.
func serve(t *testing.T, ns string) (stop func()) {
	t.Helper()
	srv, err := server.New(storetest.At(t, storetest.Where(redistest.Shared(t)), ns, nil), server.Options{Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		done <- nil
	}
	t.Cleanup(stop)
	return stop
}

func mustPlan(t *testing.T, m *Manager, spec task.PlanSpec) task.PlanID {
	t.Helper()
	id, err := m.NewPlan(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// planned opens tasks in a plan, each with what it needs.
func planned(t *testing.T, m *Manager, plan task.PlanID, base task.Spec, needs ...[]task.Need) []int64 {
	t.Helper()
	ids, err := idsOpened(m.SubmitAll(t.Context(), func(yield func(task.Spec) bool) {
		for _, n := range needs {
			s := base
			if s.Needs = n; !yield(s) {
				return
			}
		}
	}, InPlan(plan)))
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func awaitState(t *testing.T, m *Manager, id int64, want sm.State) {
	t.Helper()
	wait.Eventually(t, 15*time.Second, func() bool { return mustTask(t, m, id).State == want }, "task %d is not %s", id, want)
}

// Tasks are added in small calls, and name those before them by their place in the
// submission all the same.
func TestSubmitInPlan(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	plan := mustPlan(t, m, task.PlanSpec{Name: "many"})
	var needs [][]task.Need
	for i := range 230 {
		var of []task.Need
		for k := max(0, i-5); k < i; k++ {
			of = append(of, task.Need{Index: k, On: task.NeedsAny})
		}
		needs = append(needs, of)
	}
	var calls []int
	ids, err := idsOpened(m.SubmitAll(t.Context(), func(yield func(task.Spec) bool) {
		for _, n := range needs {
			if s := (task.Spec{Program: "p", Needs: n}); !yield(s) {
				return
			}
		}
	}, InPlan(plan), WithProgress(func(n int) { calls = append(calls, n) })))
	if err != nil || len(ids) != len(needs) {
		t.Fatal(len(ids), err)
	}
	if want := []int{23, 43, 63, 83, 103, 123, 143, 163, 183, 203, 223, 230}; !slices.Equal(calls, want) { // 10 needs of the first five, and 5 of each later one
		t.Errorf("calls end at %v, want %v", calls, want)
	}
	last := mustTask(t, m, ids[len(ids)-1])
	var want []task.Need
	for _, id := range ids[len(ids)-6 : len(ids)-1] {
		want = append(want, task.Need{Task: id, On: task.NeedsAny})
	}
	if diff := cmp.Diff(want, last.Needs); diff != "" || last.Plan != plan || last.State != sm.Blocked {
		t.Errorf("%s in plan %d, needs:\n%s", last.State, last.Plan, diff)
	}
	one, err := idOf(m.Submit(t.Context(), task.Spec{Program: "p", Needs: []task.Need{{Task: ids[0]}}, Args: task.ArgsFiles, Step: "count[2]"}, InPlan(plan)))
	if got := mustTask(t, m, one); err != nil || got.Fields["args"] != task.ArgsFiles || got.Step != "count[2]" {
		t.Errorf("%+v, %v", got.Fields, err)
	}
	for _, step := range []string{"a\nb", strings.Repeat("x", 129)} {
		if _, err := m.Submit(t.Context(), task.Spec{Program: "p", Step: step}, InPlan(plan)); fieldOf(err) != "step" {
			t.Errorf("step %q: %v", step, err)
		}
	}
	if _, err := m.Submit(t.Context(), task.Spec{Program: "p", Needs: []task.Need{{Task: 1}}}); fieldOf(err) != "needs" {
		t.Errorf("without a plan: %v", err)
	}
}

// What neither spec nor queue say is as plans have it.
func TestPlanDefaults(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t), withSettings("task_defaults.max_fails=1", "task_defaults.max_timeouts=7"))
	if _, err := m.AddQueue(t.Context(), task.QueueSpec{Name: "own", Defaults: task.Defaults{"max_fails": "3", "retry_delay": "2"}}, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	plan := mustPlan(t, m, task.PlanSpec{})
	for want, spec := range map[string]task.Spec{
		"5 0.1 1.5 10 7": {Program: "p"},
		"3 2 1.5 10 7":   {Program: "p", Queue: "own"},
		"inf 1 3 60 7": {
			Program: "p", Queue: "own", Retry: task.Retry{Limit: task.Unlimited, Delay: time.Second, Backoff: 3, MaxDelay: time.Minute},
		},
	} {
		id, err := idOf(m.Submit(t.Context(), spec, InPlan(plan)))
		if err != nil {
			t.Fatal(err)
		}
		f := mustTask(t, m, id).Fields
		if got := strings.Join([]string{f["max_fails"], f["retry_delay"], f["retry_backoff"], f["retry_max_delay"], f["max_timeouts"]}, " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	id, err := idOf(m.Submit(t.Context(), spec()))
	if err != nil || mustTask(t, m, id).Fields["max_fails"] != "1" {
		t.Errorf("outside: %v, %v", mustTask(t, m, id).Fields, err)
	}
}

// A blocked task of a plan is not released by hand, but one that was held by hand is.
func TestReleaseInPlan(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m := newManager(t, ns)
	stop := serve(t, ns)
	plan := mustPlan(t, m, task.PlanSpec{})
	ids := planned(t, m, plan, task.Spec{Program: "p", Retry: task.Retry{Limit: task.AtMost(0)}}, nil, nil, []task.Need{{Index: 0}, {Index: 1}, {Index: 0}}, []task.Need{{Index: 2}})
	release := func(id int64, wantState sm.State, want error, text string) {
		t.Helper()
		got, err := m.Unhold(t.Context(), []int64{id}, ChangeOptions{})
		if err != nil || got[0].After != wantState || !errors.Is(got[0].Err, want) || want != nil && !strings.Contains(got[0].Err.Error(), text) {
			t.Errorf("release: %+v, %v, want %s, %q", got, err, wantState, text)
		}
	}
	release(ids[0], sm.Blocked, task.ErrPlanState, "plan 1 is building")
	if err := m.ReadyPlan(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	awaitState(t, m, ids[1], sm.Open)
	if _, err := m.Hold(t.Context(), ids[1:2], ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	release(ids[1], sm.Open, nil, "")
	release(ids[2], sm.Blocked, task.ErrWaits, "task 3 needs tasks 1, 2: ")
	release(ids[3], sm.Blocked, task.ErrWaits, "task 4 needs task 3: ")
	if err := m.HoldPlan(t.Context(), plan, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	release(ids[1], sm.Blocked, task.ErrPlanState, "plan 1 is held")
	if err := m.ResumePlan(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	awaitState(t, m, ids[1], sm.Open)
	stop()
	worktest.Drain(t, worktest.Open(t, ns), worktest.Fail)
	if _, err := worktest.Open(t, ns).NotifyDependants(t.Context(), 10, ids[0]); err != nil {
		t.Fatal(err)
	}
	release(ids[2], sm.Blocked, task.ErrWaits, "task 3 never runs, because of task 1")
}

// The retry of a task in a plan waits until a server has told its dependants.
func TestRetryWhileDependantsAreTold(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	stop := serve(t, ns)
	plan := mustPlan(t, m, task.PlanSpec{OnFailure: task.FailureHolds})
	ids := planned(t, m, plan, task.Spec{Program: "p", Retry: task.Retry{Limit: task.AtMost(0)}, Args: task.ArgsFiles, Step: "s"}, nil, []task.Need{{Index: 0}})
	if err := m.ReadyPlan(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	awaitState(t, m, ids[0], sm.Open)
	stop()
	worktest.Drain(t, s, worktest.Fail)
	waits := 0
	m.after = func(time.Duration) <-chan time.Time {
		if waits++; waits == 2 {
			if _, err := s.NotifyDependants(t.Context(), 10, ids[0]); err != nil {
				t.Error(err)
			}
		}
		now := make(chan time.Time)
		close(now)
		return now
	}
	got, err := m.Retry(t.Context(), ids[:1], RetryOptions{})
	if err != nil || got[0].Err != nil || waits != 2 {
		t.Fatalf("%+v, %v, after %d waits", got, err, waits)
	}
	again := mustTask(t, m, got[0].New)
	if p, err := m.Plan(t.Context(), plan); err != nil || p.State != task.PlanReady || p.Total != 2 || again.Plan != plan || again.Fields["args"] != task.ArgsFiles || again.Step != "s" {
		t.Errorf("%+v, %v, task %v", p, err, again.Fields)
	}
}

// What the state of a plan does not allow is refused, and so is a plan that is not there.
func TestPlanStates(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	verbs := map[string]func(id task.PlanID) error{
		"ready":  func(id task.PlanID) error { return m.ReadyPlan(t.Context(), id) },
		"hold":   func(id task.PlanID) error { return m.HoldPlan(t.Context(), id, ChangeOptions{}) },
		"resume": func(id task.PlanID) error { return m.ResumePlan(t.Context(), id) },
		"cancel": func(id task.PlanID) error { return m.CancelPlan(t.Context(), id, ChangeOptions{}) },
		"retry":  func(id task.PlanID) error { _, err := m.RetryPlan(t.Context(), id, ChangeOptions{}); return err },
		"wait":   func(id task.PlanID) error { _, err := m.WaitPlan(t.Context(), id, nil); return err },
		"open":   func(id task.PlanID) error { _, err := m.Submit(t.Context(), spec(), InPlan(id)); return err },
	}
	for name, verb := range verbs {
		if err := verb(99); !errors.Is(err, task.ErrNoPlan) {
			t.Errorf("%s of no plan: %v", name, err)
		}
	}
	states := map[task.PlanState]func() task.PlanID{
		task.PlanBuilding:  func() task.PlanID { return mustPlan(t, m, task.PlanSpec{}) },
		task.PlanReady:     func() task.PlanID { return readyPlan(t, m) },
		task.PlanHeld:      func() task.PlanID { id := readyPlan(t, m); _ = verbs["hold"](id); return id },
		task.PlanCompleted: func() task.PlanID { id := mustPlan(t, m, task.PlanSpec{}); _ = verbs["ready"](id); return id },
		task.PlanCancelled: func() task.PlanID { id := readyPlan(t, m); _ = verbs["cancel"](id); return id },
	}
	for state, refused := range map[task.PlanState]string{
		task.PlanBuilding: "hold resume retry", task.PlanReady: "", task.PlanHeld: "",
		task.PlanCompleted: "cancel hold open resume", task.PlanCancelled: "hold open ready resume retry",
	} {
		var got []string
		for _, name := range []string{"cancel", "hold", "open", "ready", "resume", "retry"} {
			id := states[state]()
			if p, err := m.Plan(t.Context(), id); err != nil || p.State != state {
				t.Fatalf("%+v, %v", p, err)
			}
			dry := dryRunOf(t, m, name, id)
			err := verbs[name](id)
			if dry != nil && fmt.Sprint(*dry) != fmt.Sprint(err) {
				t.Errorf("a dry run of %s answers %v, the real one %v", name, *dry, err)
			}
			if errors.Is(err, task.ErrPlanState) {
				got = append(got, name)
			} else if err != nil {
				t.Errorf("%s of a plan that is %s: %v", name, state, err)
			}
		}
		if strings.Join(got, " ") != refused {
			t.Errorf("a plan that is %s refuses %q, want %q", state, got, refused)
		}
	}
}

// dryRunOf is what a verb on a plan answers in a dry run, which must leave everything as it is; nil for a verb that has none.
func dryRunOf(t *testing.T, m *Manager, name string, id task.PlanID) *error {
	t.Helper()
	var answer error
	before, o := planTexts(t, m, id), ChangeOptions{DryRun: true}
	switch name {
	case "cancel":
		answer = m.CancelPlan(t.Context(), id, o)
	case "hold":
		answer = m.HoldPlan(t.Context(), id, o)
	case "retry":
		_, answer = m.RetryPlan(t.Context(), id, o)
	default:
		return nil
	}
	if diff := cmp.Diff(before, planTexts(t, m, id)); diff != "" {
		t.Errorf("a dry run of %s: -before +after\n%s", name, diff)
	}
	return &answer
}

// planTexts is all that can be seen of a plan and its tasks.
func planTexts(t *testing.T, m *Manager, id task.PlanID) []any {
	t.Helper()
	p, err := m.Plan(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := m.store.PlanTasks(t.Context(), id, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	all := []any{p}
	for _, id := range ids {
		all = append(all, mustTask(t, m, id).Fields)
	}
	return all
}

func readyPlan(t *testing.T, m *Manager) task.PlanID {
	t.Helper()
	id := mustPlan(t, m, task.PlanSpec{})
	planned(t, m, id, spec(), nil)
	if err := m.ReadyPlan(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return id
}

// Plans are listed newest first; one is made once per request key.
func TestPlans(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	for i := range 3 {
		for range 2 {
			if id := mustPlan(t, m, task.PlanSpec{Name: fmt.Sprint("p", i), RequestKey: fmt.Sprint(i)}); id != task.PlanID(i)+1 {
				t.Errorf("plan %d, want %d", id, i+1)
			}
		}
	}
	got := storetest.All(t, m.Plans(t.Context()))
	if len(got) != 3 || got[1].Name != "p1" || got[2].ID != 1 || got[0].Created.IsZero() || !got[0].Ready.IsZero() {
		t.Errorf("%+v", got)
	}
	for field, spec := range map[string]task.PlanSpec{"name": {Name: "a\nb"}, "on_failure": {OnFailure: "explode"}} {
		if _, err := m.NewPlan(t.Context(), spec); fieldOf(err) != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	// A plan is not held by a task because of the name of who holds it.
	if got := holder("12", ""); got != "manager 12" || !strings.HasPrefix(holder("12", "x"), "12: ") || task.PlanReady.Terminal() {
		t.Error(got)
	}
}

// Plans that come and go while they are listed make none of the others come twice, or not at all.
func TestPlansWhileTheyChange(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m := newManager(t, ns)
	const all = 2*firstPage + 50
	for range all {
		mustPlan(t, m, task.PlanSpec{Name: "p"})
	}
	times, last := map[task.PlanID]int{}, task.PlanID(all+1)
	for p, err := range m.Plans(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if p.ID > last && p.ID <= all {
			t.Errorf("plan %d comes after %d", p.ID, last)
		}
		last = p.ID
		times[p.ID]++
		switch p.ID {
		case all - 10:
			mustPlan(t, m, task.PlanSpec{Name: "new"})
		case all - 20: // three of those that were listed leave, as archived ones do
			redistest.Shared(t).Do(t, "ZREM", ns+":plans", fmt.Sprint(all), fmt.Sprint(all-1), fmt.Sprint(all-2))
		}
	}
	for id := task.PlanID(1); id <= all; id++ {
		if times[id] != 1 {
			t.Errorf("plan %d came %d times", id, times[id])
		}
	}
}

// A plan of many tasks lists each once, in the order in which they were added, also those that are added meanwhile.
func TestPlanTasks(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	plan := mustPlan(t, m, task.PlanSpec{Name: "p"})
	mustOpen(t, m, 1, spec()) // of no plan
	add := func(n int) {
		if _, err := m.SubmitAll(t.Context(), slices.Values(slices.Repeat([]task.Spec{spec()}, n)), InPlan(plan)); err != nil {
			t.Fatal(err)
		}
	}
	add(planPage + 20)
	var ids []int64
	for id, err := range m.PlanTasks(t.Context(), plan) {
		if err != nil {
			t.Fatal(err)
		}
		if ids = append(ids, id); len(ids) == 10 {
			add(3)
		}
	}
	if len(ids) != planPage+23 || ids[0] != 2 || !slices.IsSorted(ids) {
		t.Errorf("%d tasks: %v", len(ids), ids)
	}
	if got := storetest.All(t, m.PlanTasks(t.Context(), 99)); len(got) > 0 {
		t.Errorf("a plan that is not there has tasks %v", got)
	}
}

// A plan that a failure holds can be held again: its open tasks are held then.
func TestHoldOfAHeldPlan(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m := newManager(t, ns)
	plan := mustPlan(t, m, task.PlanSpec{Name: "p", OnFailure: task.FailureHolds})
	id, err := idOf(m.Submit(t.Context(), task.Spec{Program: "p"}, InPlan(plan)))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.ReadyPlan(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	storetest.AdvancePlans(t, redisOf(m), 10, true)
	redistest.Shared(t).Do(t, "HSET", ns+":plan:1", "state", "held", "held_by", "7") // as a failure does
	if state := mustTask(t, m, id).State; state != sm.Open {
		t.Fatalf("the task is %s, want open", state)
	}
	if err := m.HoldPlan(t.Context(), plan, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	if state := mustTask(t, m, id).State; state != sm.Blocked {
		t.Errorf("the task is %s, want blocked", state)
	}
}

// Who interrupts a wait is named, also where that cuts a call to Redis short.
func TestWaitPlanSaysWhatEndedIt(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	cancel(why)
	if _, err := m.WaitPlan(ctx, 1, nil); !errors.Is(err, why) || errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, why)
	}
}
