package plan_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// P01: a plan without tasks is completed.
func TestEmptyPlan(t *testing.T) {
	t.Parallel()
	s := newSite(t, 0, nil)
	p := newPlan(t, s)
	if status, err := p.Status(t.Context()); err != nil || status.State != task.PlanBuilding || status.Name != t.Name() {
		t.Errorf("%+v, %v", status, err)
	}
	checkEnd(t, run(t, p), task.PlanCompleted, 0, 0, 0, 0)
	must(t, p.Ready(t.Context())) // a program that begins again
}

// P02: nothing of a plan runs before it is ready; P03: a chain runs in its order, each
// with the output of the one before as its last word.
func TestChain(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2, nil)
	p := newPlan(t, s)
	a := p.Add(spec("echo", "a"))
	b := p.Add(spec("echo", "b"), a)
	c := p.Add(spec("echo", "c"), b)
	if a.ID() != 0 {
		t.Error("sent before Send")
	}
	must(t, p.Send(t.Context()))
	other := newPlan(t, s)
	other.Add(spec("echo", "other"))
	checkEnd(t, run(t, other), task.PlanCompleted, 1, 0, 0, 0) // P14: while nothing of the first can run
	wait.Never(t, 200*time.Millisecond, func() bool { return s.done() != "other" }, "the plan is not ready")
	if got := stateOf(t, s, a.ID()); got != statemachine.Blocked {
		t.Errorf("the first is %s", got)
	}
	checkEnd(t, run(t, p), task.PlanCompleted, 3, 0, 0, 0)
	checkDone(t, s, "other; a; b a; c b+a")
	checkResult(t, p, c, "c+b+a")
}

// P04: the arguments come in the order of the dependencies, in whatever order they end; P05:
// one named twice comes twice.
func TestDiamond(t *testing.T) {
	t.Parallel()
	cEnded := make(chan struct{})
	s := newSite(t, 2, handlers{
		"slow": func(ctx context.Context, j *worker.Job) error {
			select {
			case <-cEnded:
			case <-ctx.Done():
			}
			return echo(ctx, j)
		},
	})
	p := newPlan(t, s)
	a := p.Add(spec("echo", "a"))
	b := p.Add(spec("slow", "b"), a)
	c := p.Add(spec("echo", "c"), a)
	d := p.Add(spec("echo", "d"), b, c, c)
	must(t, p.Ready(t.Context()))
	wait.Eventually(t, patience, func() bool { return stateOf(t, s, c.ID()) == statemachine.Succeeded }, "c does not end")
	close(cEnded)
	checkEnd(t, awaitEnd(t, p), task.PlanCompleted, 4, 0, 0, 0)
	checkDone(t, s, "a; c a; b a; d b+a c+a c+a") //nolint:dupword // the same provider twice
	checkResult(t, p, d, "d+b+a+c+a+c+a")
}

// P06: what needs nothing starts at once, on two workers side by side. P14: that the
// rest of the plan waits keeps no other plan.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	meeting, free := make(chan struct{}), make(chan struct{})
	s := newSite(t, 3, handlers{"meet": func(ctx context.Context, j *worker.Job) error {
		select {
		case meeting <- struct{}{}:
		case <-meeting:
		case <-ctx.Done():
			return ctx.Err()
		}
		<-free
		return echo(ctx, j)
	}})
	p := newPlan(t, s)
	p.Add(spec("echo", "last"), p.Add(spec("meet", "a")), p.Add(spec("meet", "b")))
	must(t, p.Ready(t.Context()))
	other := newPlan(t, s)
	other.Add(spec("echo", "other"))
	checkEnd(t, run(t, other), task.PlanCompleted, 1, 0, 0, 0)
	checkDone(t, s, "other")
	close(free)
	checkEnd(t, awaitEnd(t, p), task.PlanCompleted, 3, 0, 0, 0)
}

// P10 and P12: tasks are added to a plan that runs, and what they need may have
// ended; one that is over takes none, and is not changed.
func TestAddLater(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	s := newSite(t, 2, handlers{"gate": func(ctx context.Context, j *worker.Job) error { <-free; return echo(ctx, j) }})
	p := newPlan(t, s)
	first, gate := p.Add(spec("echo", "a")), p.Add(spec("gate", "g"))
	must(t, p.Ready(t.Context()))
	wait.Eventually(t, patience, func() bool { return stateOf(t, s, first.ID()) == statemachine.Succeeded }, "a does not end")
	met := p.Add(spec("echo", "b"), first)
	both := p.Add(spec("echo", "c"), plan.ID(first.ID()), gate)
	must(t, p.Send(t.Context()))
	wait.Eventually(t, patience, func() bool { return stateOf(t, s, met.ID()) == statemachine.Succeeded }, "b does not end")
	close(free)
	checkEnd(t, awaitEnd(t, p), task.PlanCompleted, 4, 0, 0, 0)
	checkResult(t, p, met, "b+a")
	checkResult(t, p, both, "c+a+g")
	late := p.Add(spec("echo", "late"), first)
	if err := p.Send(t.Context()); !errors.Is(err, task.ErrPlanState) || late.ID() != 0 {
		t.Errorf("%v, task %d", err, late.ID())
	}
	if _, err := p.Result(t.Context(), late); !errors.Is(err, plan.ErrNotSent) {
		t.Error(err)
	}
	checkEnd(t, awaitEnd(t, p), task.PlanCompleted, 4, 0, 0, 0)
}
