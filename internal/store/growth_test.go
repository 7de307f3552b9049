package store_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// planKept makes plan 1: task 1, and a step for the lines of its result.
func planKept(t *testing.T, sp *storetest.Space) { t.Helper(); keptOn(t, sp, "") }

func keptOn(t *testing.T, sp *storetest.Space, on task.OnFailure) {
	t.Helper()
	planned(t, sp, newPlan(t, sp, on), nil)
	keep(t, sp.Store)
}

func keep(t *testing.T, st *store.Store) {
	t.Helper()
	if err := st.KeepGrowth(t.Context(), 1, "{}", 1, []int64{1}); err != nil {
		t.Fatal(err)
	}
}

func keepGrowthCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return done(func() error { return st.KeepGrowth(t.Context(), 1, "{}", 1, []int64{1}) })
}

// planSource has reported task 1, which waits to be settled.
func planSource(on task.OnFailure, errText string) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		keptOn(t, sp, on)
		steer(t, sp, 1, task.PlanReady)
		drainTasks(t, sp)
		report(t, sp, errText)
	}
}

// drainTasks opens what is free, and leaves the steps alone.
func drainTasks(t *testing.T, sp *storetest.Space) {
	t.Helper()
	if err := sp.Raw.ZRem(t.Context(), sp.Key("draining"), "g1").Err(); err != nil {
		t.Fatal(err)
	}
	drainAll(t, sp)
}

// planLines has ended task 1: the step is due.
func planLines(errText string) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		planSource("", errText)(t, sp)
		must(t, sp, 1, statemachine.Server, statemachine.Settle)
		if _, err := sp.Store.NotifyDependants(t.Context(), 9, 1); err != nil {
			t.Fatal(err)
		}
	}
}

func openLines(t *testing.T, st *store.Store, before, of int) ([]task.Opened, error) {
	t.Helper()
	return st.OpenAll(t.Context(), tasks.OpenRequest{
		Key: "k", Plan: 1, Specs: []task.Definition{storetest.Spec(), storetest.Spec()}, Grow: &tasks.Grow{Before: before, Of: of, Source: 1},
	})
}

func openLinesCall(of int) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		return func() (any, error) { return openLines(t, st, 0, of) }
	}
}

func planOpened(t *testing.T, sp *storetest.Space) {
	t.Helper()
	planLines("")(t, sp)
	if _, err := openLines(t, sp.Store, 0, 2); err != nil {
		t.Fatal(err)
	}
}

func nudges(t *testing.T, st *store.Store) string {
	t.Helper()
	g, err := st.Growth(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return g.Nudges
}

func grownCall(nudges, trouble string, empty bool) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		var came []plans.Came
		if empty {
			came = []plans.Came{{Source: 1}}
		}
		return func() (any, error) { return st.Grown(t.Context(), 1, nudges, trouble, came) }
	}
}

func planTroubled(t *testing.T, sp *storetest.Space) {
	t.Helper()
	planLines("")(t, sp)
	troubled(t, sp)
}

func regrowCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) { return st.RetryGrowth(t.Context(), 1) }
}

func firstCall(hash string) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		return func() (any, error) { return st.FirstVersion(t.Context(), 1, "http://h/p.zip", hash) }
	}
}

// All tasks of a plan run the version of a source that was said first. A plan that has gone does not come back.
func TestFirstVersion(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	is := func(source, said, want string) {
		t.Helper()
		if got, err := sp.Store.FirstVersion(t.Context(), 1, source, said); got != want || err != nil {
			t.Errorf("%s, said %q: %q, error %v; want %q", source, said, got, err, want)
		}
	}
	is("a", "01", "01")
	if n := sp.Raw.Exists(t.Context(), sp.Key("plan:1")).Val(); n != 0 {
		t.Error("it makes a plan")
	}
	planBuilt("")(t, sp)
	is("a", "", "")
	is("a", "02", "02")
	is("a", "03", "02")
	is("a", "", "02")
	is("b", "04", "04")
	if p, err := sp.Store.Plan(t.Context(), 1); err != nil || p.State != task.PlanBuilding {
		t.Errorf("the plan is %+v, error %v", p, err)
	}
}

// A plan with steps to be opened is over when they are, and not before; who has not heard of a nudge looks again.
func TestGrowth(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	planLines("")(t, sp)
	is := func(state task.PlanState, growing int64, trouble string) {
		t.Helper()
		g, err := sp.Store.Growth(t.Context(), 1)
		if err != nil || g.State != state || g.Growing != growing || g.GrowthError != trouble {
			t.Fatalf("%+v, error %v; want %s, %d, %q", g, err, state, growing, trouble)
		}
	}
	is(task.PlanReady, 1, "")
	if done, err := sp.Store.Grown(t.Context(), 1, "0", "", nil); err != nil || done {
		t.Errorf("done %v, error %v; a nudge was missed", done, err)
	}
	troubled(t, sp)
	is(task.PlanFailed, 1, "too many")
	if again, err := sp.Store.RetryGrowth(t.Context(), 1); err != nil || !again {
		t.Errorf("again %v, error %v", again, err)
	}
	is(task.PlanReady, 1, "")
	if _, err := openLines(t, sp.Store, 0, 3); err != nil {
		t.Fatal(err)
	}
	if _, err := sp.Store.OpenAll(t.Context(), tasks.OpenRequest{
		Key: "other", Plan: 1, Specs: []task.Definition{storetest.Spec()}, Grow: &tasks.Grow{Of: 3, Source: 1},
	}); !errors.Is(err, conn.ErrGrown) {
		t.Errorf("opened twice: %v", err)
	}
	if _, err := sp.Store.OpenAll(t.Context(), tasks.OpenRequest{
		Key: "rest", Plan: 1, Specs: []task.Definition{storetest.Spec()}, Grow: &tasks.Grow{Before: 2, Of: 3, Source: 1},
	}); err != nil {
		t.Fatal(err)
	}
	is(task.PlanReady, 0, "")
	g, err := sp.Store.Growth(t.Context(), 1)
	want := map[int]plans.GrownStep{0: {Opened: true, Tasks: []int64{2, 3, 4}, Of: 3, Source: 1}}
	if diff := cmp.Diff(want, g.Steps); err != nil || diff != "" {
		t.Errorf("error %v, difference\n%s", err, diff)
	}
	drainAll(t, sp)
	if n := sp.Raw.Exists(t.Context(), sp.Key("growth:1")).Val(); n != 0 {
		t.Error("the steps are kept after they were opened")
	}
	c := newCrew(sp)
	for id := int64(2); id <= 4; id++ {
		c.end(t, id, "", "")
	}
	is(task.PlanCompleted, 0, "")
}

func troubled(t *testing.T, sp *storetest.Space) {
	t.Helper()
	if done, err := sp.Store.Grown(t.Context(), 1, nudges(t, sp.Store), "too many", nil); err != nil || !done {
		t.Fatalf("done %v, error %v", done, err)
	}
}
