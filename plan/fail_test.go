package plan_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/tdftest"
	"github.com/tdf-go/tdf/worker"
)

// flaky fails until it is mended.
type flaky struct{ mended atomic.Bool }

func (f *flaky) run(ctx context.Context, j *worker.Job) error {
	if !f.mended.Load() {
		return fmt.Errorf("not yet")
	}
	return echo(ctx, j)
}

// once is a spec whose task may not be run again.
func once(program, input string) task.Spec {
	s := spec(program, input)
	s.Retry.Limit = task.AtMost(0)
	return s
}

// P08: a task that fails is run again, five times at most, and those that need it wait.
func TestFailsOnce(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	s := newSite(t, 2, handlers{"shaky": func(ctx context.Context, j *worker.Job) error {
		switch n := tries.Add(1); {
		case n == 1: // as in zk-plan
			_, err := fmt.Fprintln(j.Stderr(), "attempt 1")
			return err
		case n <= 5:
			return fmt.Errorf("attempt %d", n)
		}
		return echo(ctx, j)
	}})
	p := newPlan(t, s)
	last := p.Add(spec("echo", "b"), p.Add(spec("shaky", "a")))
	checkEnd(t, run(t, p), task.PlanCompleted, 2, 0, 0, 0)
	checkDone(t, s, "a; a; b a") //nolint:dupword // the first returned no error, but had written to stderr
	checkResult(t, p, last, "b+a")
}

// A task that may fail without limit is run again until it succeeds, after the rests it has.
func TestFailsUnlimited(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	s := newSite(t, 1, handlers{"shaky": func(ctx context.Context, j *worker.Job) error {
		if tries.Add(1) <= 20 {
			return fmt.Errorf("attempt %d", tries.Load())
		}
		return echo(ctx, j)
	}})
	p := newPlan(t, s)
	shaky := spec("shaky", "a")
	shaky.Retry = task.Retry{Limit: task.Unlimited, Delay: time.Millisecond, MaxDelay: 5 * time.Millisecond}
	tk := p.Add(shaky)
	checkEnd(t, run(t, p), task.PlanCompleted, 1, 0, 0, 0)
	found, err := s.Task(t.Context(), tk.ID())
	must(t, err)
	if found.Fails != 20 || found.Fields["retry_backoff"] != "1.5" {
		t.Errorf("%d fails, %v", found.Fails, found.Fields)
	}
}

// P17: a task that fails, with no retry left, fails the plan. What needs it is cancelled,
// whatever way it does, and told which task is the cause; the rest is run.
func TestFailsForGood(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2, nil)
	p := newPlan(t, s)
	bad := p.Add(once("fail", ""))
	next := p.Add(spec("echo", "b"), bad)
	after := p.Add(spec("echo", "c"), next, p.Add(spec("echo", "x")))
	p.Add(spec("echo", "z"), plan.Any(after))
	checkEnd(t, run(t, p), task.PlanFailed, 2, 1, 2, 0)
	for _, tk := range []*plan.Task{next, after} {
		found, err := s.Task(t.Context(), tk.ID())
		must(t, err)
		if found.State != statemachine.Cancelled || found.DoomedBy != bad.ID() || found.CancelReason == "" || found.Plan != p.ID() {
			t.Errorf("%s because of %d (%s)", found.State, found.DoomedBy, found.CancelReason)
		}
	}
	var none *plan.ResultError
	if _, err := p.Result(t.Context(), bad); !errors.As(err, &none) || none.End != statemachine.Failed || !errors.Is(err, plan.ErrNoResult) {
		t.Error(err)
	}
}

// An output that was cut is no result, although its task has succeeded.
func TestCutOutput(t *testing.T) {
	t.Parallel()
	site, _ := tdftest.New(t)
	p, err := plan.New(t.Context(), manager.New(site, "m", manager.Options{}), t.Name())
	must(t, err)
	loud := p.Add(task.Spec{Program: "loud", Class: "loud"})
	must(t, p.Ready(t.Context()))
	tdftest.Work(t, site, handlers{"loud": func(_ context.Context, j *worker.Job) error {
		_, err := j.Stdout().Write(make([]byte, j.OutputLimit+1))
		return err
	}})
	var none *plan.ResultError
	if text, err := p.Result(t.Context(), loud); !errors.As(err, &none) || !none.Cut || none.Task != loud.ID() || none.End != statemachine.Succeeded {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// A plan that holds on a failure goes on once the task is retried, and those that
// need it wait for the retry.
func TestHoldsOnFailure(t *testing.T) {
	t.Parallel()
	var f flaky
	s := newSite(t, 2, handlers{"flaky": f.run})
	p := newPlan(t, s, plan.OnFailure(task.FailureHolds))
	bad := p.Add(once("flaky", "a"))
	last := p.Add(spec("echo", "b"), bad)
	must(t, p.Ready(t.Context()))
	held := func() bool {
		status, err := p.Status(t.Context())
		must(t, err)
		return status.State == task.PlanHeld && status.HeldBy == fmt.Sprint(bad.ID())
	}
	wait.Eventually(t, patience, held, "it does not hold")
	f.mended.Store(true)
	got, err := s.Retry(t.Context(), []int64{bad.ID()}, manager.RetryOptions{})
	if err != nil || got[0].Err != nil {
		t.Fatal(got, err)
	}
	checkEnd(t, awaitEnd(t, p), task.PlanCompleted, 2, 0, 0, 0)
	checkDone(t, s, "a; b a")
	checkResult(t, p, bad, "a")
	checkResult(t, p, last, "b+a")
}

// A plan that goes on runs what needs the failed task all the same.
func TestGoesOnAfterFailure(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2, nil)
	p := newPlan(t, s, plan.OnFailure(task.FailureContinues))
	p.Add(spec("echo", "b"), p.Add(once("fail", "")), p.Add(spec("echo", "a")))
	checkEnd(t, run(t, p), task.PlanFailed, 2, 1, 0, 0)
	checkDone(t, s, "a; b  a")
}

// What needs a failure runs after one, and is skipped after a success, with all that
// needs it: that is no failure of the plan.
func TestNeedsFailure(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2, nil)
	p := newPlan(t, s)
	good := p.Add(spec("echo", "a"))
	repair := p.Add(spec("echo", "repair"), plan.Failure(good))
	p.Add(spec("echo", "after"), repair)
	checkEnd(t, run(t, p), task.PlanCompleted, 1, 0, 0, 2)
	checkDone(t, s, "a")
	p = newPlan(t, s)
	p.Add(spec("echo", "mend"), plan.Failure(p.Add(once("fail", ""))))
	p.Add(spec("echo", "all"), plan.Any(p.Add(once("fail", ""))))
	checkEnd(t, run(t, p), task.PlanFailed, 2, 2, 0, 0)
}

// Retry of a plan repeats what failed and what was cancelled because of it, in an
// order in which each waits for what it needs, also where some of it was retried
// before; skipped tasks stay so.
func TestRetryPlan(t *testing.T) {
	t.Parallel()
	var f flaky
	s := newSite(t, 3, handlers{"flaky": f.run})
	p := newPlan(t, s)
	good := p.Add(spec("echo", "g"))
	bad := p.Add(once("flaky", "a"))
	mid := p.Add(spec("echo", "b"), bad, good)
	last := p.Add(spec("echo", "c"), mid, bad)
	p.Add(spec("echo", "skip"), plan.Failure(good))
	chain := last
	for range 120 { // more than one call opens
		chain = p.Add(spec("echo", "n"), chain)
	}
	checkEnd(t, run(t, p), task.PlanFailed, 1, 1, 122, 1)
	// The retry of the second is cancelled again, and comes behind all others in the plan.
	if got, err := s.Retry(t.Context(), []int64{mid.ID()}, manager.RetryOptions{}); err != nil || got[0].Err != nil {
		t.Fatal(got, err)
	}
	checkEnd(t, awaitEnd(t, p), task.PlanFailed, 1, 1, 122, 1)
	f.mended.Store(true)
	got, err := p.Retry(t.Context())
	if err != nil || len(got) != 123 {
		t.Fatalf("%d retried, %v", len(got), err)
	}
	for _, one := range got {
		if one.Err != nil || one.Existing {
			t.Fatalf("%+v", one)
		}
	}
	checkEnd(t, awaitEnd(t, p), task.PlanCompleted, 124, 0, 0, 1)
	checkResult(t, p, last, "c+b+a+g+a")
	if got, err := p.Retry(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("once more: %v, %v", got, err)
	}
}
