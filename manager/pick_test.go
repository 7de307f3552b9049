package manager

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Each condition of Only; what is not meant stays as it is, and so does an outcome without a handler.
func TestRunOnly(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s, m := worktest.Open(t, ns), newManager(t, ns)
	if _, err := m.AddQueue(t.Context(), task.QueueSpec{Name: "q"}, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	plan := mustPlan(t, m, task.PlanSpec{})
	for _, c := range []struct {
		spec task.Spec
		opts []SubmitOption
	}{
		{spec: task.Spec{Program: "mine"}},
		{spec: task.Spec{Program: "theirs"}},
		{spec: task.Spec{Program: "theirs", Queue: "q"}},
		{spec: task.Spec{Program: "theirs", Labels: []string{"zone=eu", "gpu=a"}}},
		{spec: task.Spec{Program: "theirs"}, opts: []SubmitOption{InPlan(plan)}},
	} {
		if _, err := m.Submit(t.Context(), c.spec, c.opts...); err != nil {
			t.Fatal(err)
		}
	}
	expire(t, m, 1, 2, 3, 4, 5)
	mustOpen(t, m, 1, spec())
	worktest.Drain(t, s, worktest.Fail)
	for _, c := range []struct {
		only Selection
		want int64
	}{
		{Selection{Program: "mine"}, 1},
		{Selection{Queue: "q"}, 3},
		{Selection{Labels: []string{"gpu=a"}}, 4},
		{Selection{Plan: plan}, 5},
		{Selection{IDs: []IDRange{{2, 2}, {99, 99}}}, 2},
		{Selection{Match: regexp.MustCompile("^it broke")}, 6},
	} {
		var got []int64
		note := func(_ context.Context, t *task.Task) error { got = append(got, t.ID); return nil }
		h := Handlers{Only: c.only, Cancelled: note, Failed: note, Stop: func(context.Context, int) bool { return true }}
		if err := m.Run(t.Context(), h); err != nil || !slices.Equal(got, []int64{c.want}) {
			t.Errorf("%+v: handled %v, %v, want %d", c.only, got, err, c.want)
		}
	}
	if c, err := m.Count(t.Context()); err != nil || c[sm.Archived] != 6 {
		t.Errorf("%v, %v, want all archived in the end", c, err)
	}
}

// expire has tasks end cancelled.
func expire(t *testing.T, m *Manager, ids ...int64) {
	t.Helper()
	changes, err := m.Cancel(t.Context(), ids, ChangeOptions{})
	if err != nil || failedChanges(changes) != nil {
		t.Fatal(err, failedChanges(changes))
	}
}

func TestRunWithoutHandler(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t), quick())
	mustOpen(t, m, 2, spec())
	expire(t, m, 1)
	worktest.Drain(t, worktest.Open(t, m.Namespace()), worktest.Echo)
	stop := func(context.Context, int) bool { return true }
	if err := m.Run(t.Context(), Handlers{Stop: stop}); !errors.Is(err, ErrNoHandler) {
		t.Errorf("without a handler: %v, want ErrNoHandler", err)
	}
	for name, only := range map[string]Selection{"newest": {All: true, Newest: true}, "limit": {All: true, Limit: 1}, "ids": {IDs: []IDRange{{0, 0}}}} {
		if err := m.Run(t.Context(), Handlers{Only: only, Unhandled: Archive, Stop: stop}); fieldOf(err) == "" {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
	if err := m.Run(t.Context(), Handlers{Succeeded: Archive, Stop: stop}); err != nil {
		t.Error(err)
	}
	if c, err := m.Count(t.Context()); err != nil || c[sm.Archived] != 1 || c[sm.Cancelled] != 1 {
		t.Errorf("%v, %v, want the cancelled task left alone", c, err)
	}
}

// The tasks of others cost one look each, however many passes there are, and whatever they were before a flush.
func TestTasksOfOthersAreLookedAtOnce(t *testing.T) {
	t.Parallel()
	const theirs, passes = 2000, 30
	ns := redistest.Namespace(t)
	opener := newManager(t, ns)
	m, calls := countedManager(t, ns)
	expire(t, opener, mustOpen(t, opener, theirs, task.Spec{Program: "theirs"})...)
	handled := make(chan int64, 1)
	background(t, m, Handlers{Only: Selection{Program: "mine"}, Unhandled: func(_ context.Context, t *task.Task) error {
		handled <- t.ID
		return nil
	}})
	one := func(want int64) {
		expire(t, opener, mustOpen(t, opener, 1, task.Spec{Program: "theirs"})...)
		expire(t, opener, mustOpen(t, opener, 1, task.Spec{Program: "mine"})...)
		if got := wait.Receive(t, limit, handled, "a task of its own is not handled"); got != want {
			t.Fatalf("handled %d, want %d", got, want)
		}
	}
	for n := range passes {
		one(int64(theirs + 2*(n+1)))
	}
	if got := calls.looked.Load(); got < theirs || got > theirs+10*passes {
		t.Errorf("looked at %d tasks, want %d and a few in each pass", got, theirs)
	}
	if got := calls.listed.Load(); got > 3*theirs+passes*4*firstPage {
		t.Errorf("listed %d ids, want them all at the beginning, and the newest in each pass", got)
	}
	if _, err := opener.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	one(2)
	if c, err := m.Count(t.Context()); err != nil || c[sm.Cancelled] < 1 {
		t.Errorf("%v, %v", c, err)
	}
}
