package tdftest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/tdftest"
	"github.com/tdf-go/tdf/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func shout(_ context.Context, job *worker.Job) error {
	fmt.Fprint(job.Stdout(), strings.ToUpper(strings.Join(job.Args, " ")))
	return nil
}

func end(t *testing.T, m *manager.Manager, id int64) *task.Task {
	t.Helper()
	read, err := m.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func open(t *testing.T, m *manager.Manager, spec task.Spec) int64 {
	t.Helper()
	opened, err := m.Submit(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return opened.ID
}

// Tasks are worked on until nothing is left to do now; what has no handler stays.
func TestWork(t *testing.T) {
	t.Parallel()
	site, _ := tdftest.New(t)
	m := manager.New(site, "test", manager.Options{})
	var ids []int64
	for i := range 20 {
		ids = append(ids, open(t, m, task.Spec{Program: "shout", Class: "shout", Input: fmt.Sprint("no ", i)}))
	}
	tdftest.Work(t, site, map[string]worker.Handler{"shout": shout})
	for i, id := range ids {
		if got := end(t, m, id); got.State != statemachine.Succeeded || got.Output() != fmt.Sprint("NO ", i) {
			t.Errorf("task %d is %s: %q", id, got.State, got.Output())
		}
	}
	tdftest.Work(t, site, map[string]worker.Handler{"shout": shout}) // there is nothing
}

// Time passes when it is told to: a rest, a start, an end.
func TestClock(t *testing.T) {
	t.Parallel()
	site, clock := tdftest.New(t)
	m := manager.New(site, "test", manager.Options{})
	tries := 0
	handlers := map[string]worker.Handler{"shout": shout, "flaky": func(context.Context, *worker.Job) error {
		if tries++; tries == 1 {
			return errors.New("not yet")
		}
		return nil
	}}
	later := open(t, m, task.Spec{Program: "shout", Class: "shout", StartIn: time.Hour})
	never := open(t, m, task.Spec{Program: "shout", Class: "shout", StartIn: 3 * time.Hour, EndIn: 4 * time.Hour})
	flaky := open(t, m, task.Spec{Program: "flaky", Class: "flaky", Retry: task.Retry{Limit: task.AtMost(1), Delay: 30 * time.Minute}})
	check := func(want ...statemachine.State) {
		t.Helper()
		for i, id := range []int64{later, never, flaky} {
			if got := end(t, m, id); got.State != want[i] {
				t.Errorf("at %s task %d is %s, want %s", clock.Now(), id, got.State, want[i])
			}
		}
	}
	tdftest.Work(t, site, handlers)
	check(statemachine.Open, statemachine.Open, statemachine.Open)
	clock.Advance(29 * time.Minute)
	tdftest.Work(t, site, handlers)
	check(statemachine.Open, statemachine.Open, statemachine.Open)
	clock.Advance(31 * time.Minute)
	tdftest.Work(t, site, handlers)
	check(statemachine.Succeeded, statemachine.Open, statemachine.Succeeded)
	clock.Advance(5 * time.Hour)
	tdftest.Work(t, site, handlers)
	check(statemachine.Succeeded, statemachine.Expired, statemachine.Succeeded)
	if want := tdftest.Epoch.Add(6 * time.Hour); !clock.Now().Equal(want) {
		t.Errorf("it is %s, want %s", clock.Now(), want)
	}
}

// Work goes through all steps of a plan.
func TestPlan(t *testing.T) {
	t.Parallel()
	site, _ := tdftest.New(t)
	m := manager.New(site, "test", manager.Options{})
	p, err := plan.New(t.Context(), m, "chain")
	if err != nil {
		t.Fatal(err)
	}
	last := p.Add(task.Spec{Program: "shout", Class: "shout", Input: "a"})
	for range 5 {
		last = p.Add(task.Spec{Program: "shout", Class: "shout", Input: "b"}, last)
	}
	if err := p.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	tdftest.Work(t, site, map[string]worker.Handler{"shout": shout})
	if status, err := p.Status(t.Context()); err != nil || status.State != task.PlanCompleted {
		t.Errorf("%+v, %v", status, err)
	}
	if text, err := p.Result(t.Context(), last); err != nil || !strings.HasPrefix(text, "B ") {
		t.Errorf("%q, %v", text, err)
	}
}

// A task that it or its queue says to archive at once needs no manager.
func TestArchivedAtOnce(t *testing.T) {
	t.Parallel()
	site, _ := tdftest.New(t)
	m := manager.New(site, "test", manager.Options{})
	if _, err := m.AddQueue(t.Context(), task.QueueSpec{Name: "quiet", Defaults: task.Defaults{"archive": task.ArchiveAtOnce}}, manager.ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	fails := func(context.Context, *worker.Job) error { return errors.New("no") }
	for _, c := range []struct {
		spec           task.Spec
		state, outcome statemachine.State
	}{
		{task.Spec{Program: "shout", Archive: task.ArchiveAtOnce}, statemachine.Archived, statemachine.Succeeded},
		{task.Spec{Program: "fails", Archive: task.ArchiveAtOnce}, statemachine.Archived, statemachine.Failed},
		{task.Spec{Program: "shout", Queue: "quiet"}, statemachine.Archived, statemachine.Succeeded},
		{task.Spec{Program: "shout", Queue: "quiet", Archive: task.ArchiveByManager}, statemachine.Succeeded, statemachine.Succeeded},
		{task.Spec{Program: "shout"}, statemachine.Succeeded, statemachine.Succeeded},
	} {
		c.spec.Class = c.spec.Program
		id := open(t, m, c.spec)
		tdftest.Work(t, site, map[string]worker.Handler{"shout": shout, "fails": fails})
		if got := end(t, m, id); got.State != c.state || got.EndState() != c.outcome {
			t.Errorf("%+v is %s, with the outcome %s", c.spec, got.State, got.EndState())
		}
	}
}
