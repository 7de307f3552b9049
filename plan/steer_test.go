package plan_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// gate lets tasks go on once it is opened.
type gate struct {
	begun chan struct{}
	open  chan struct{}
}

func newGate() *gate { return &gate{begun: make(chan struct{}, 100), open: make(chan struct{})} }

func (g *gate) run(ctx context.Context, j *worker.Job) error {
	g.begun <- struct{}{}
	select {
	case <-g.open:
		return echo(ctx, j)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A plan held by hand lets what runs go on and starts nothing more, neither what was
// open nor what becomes free; resumed, it goes on as if nothing had been.
func TestHoldAndResume(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := newSite(t, 1, handlers{"gate": g.run})
	p := newPlan(t, s)
	runs := p.Add(spec("gate", "a"))
	must(t, p.Ready(t.Context()))
	wait.Receive(t, patience, g.begun, "it does not run")
	open := p.Add(spec("echo", "b"))
	p.Add(spec("echo", "c"), runs)
	must(t, p.Send(t.Context()))
	wait.Eventually(t, patience, func() bool { return stateOf(t, s, open.ID()) == statemachine.Open }, "b is not open")
	must(t, p.Hold(t.Context(), "no licence"))
	held, err := s.Task(t.Context(), open.ID())
	if err != nil || held.State != statemachine.Blocked || held.Hold != "no licence" {
		t.Errorf("%s: %q, %v", held.State, held.Hold, err)
	}
	close(g.open)
	wait.Eventually(t, patience, func() bool { return stateOf(t, s, runs.ID()) == statemachine.Succeeded }, "a does not end")
	p.Add(spec("echo", "d"))
	must(t, p.Ready(t.Context())) // of a program that begins again: it stays held
	wait.Never(t, 300*time.Millisecond, func() bool { return s.done() != "a" }, "the plan is held")
	if status, err := p.Status(t.Context()); err != nil || status.State != task.PlanHeld || status.HeldBy != "m: no licence" {
		t.Errorf("%+v, %v", status, err)
	}
	must(t, p.Resume(t.Context()))
	checkEnd(t, awaitEnd(t, p), task.PlanCompleted, 4, 0, 0, 0)
	if held, err = s.Task(t.Context(), open.ID()); err != nil || held.Hold != "" {
		t.Errorf("held because of %q, %v", held.Hold, err)
	}
	if err := p.Resume(t.Context()); !errors.Is(err, task.ErrPlanState) {
		t.Error(err)
	}
}

// A plan that was held by a failure and is resumed goes on with what does not need it.
func TestResumeAfterFailure(t *testing.T) {
	t.Parallel()
	var f flaky
	s := newSite(t, 1, handlers{"flaky": f.run})
	p := newPlan(t, s, plan.OnFailure(task.FailureHolds))
	bad := p.Add(once("flaky", "a"))
	p.Add(spec("echo", "b"), bad)
	must(t, p.Ready(t.Context()))
	wait.Eventually(t, patience, func() bool { st, err := p.Status(t.Context()); return err == nil && st.State == task.PlanHeld }, "it does not hold")
	must(t, p.Resume(t.Context()))
	p.Add(spec("echo", "c"))
	must(t, p.Send(t.Context()))
	wait.Eventually(t, patience, func() bool { return s.done() == "c" }, "c does not run")
	f.mended.Store(true)
	if got, err := p.Retry(t.Context()); err != nil || len(got) != 1 {
		t.Error(got, err)
	}
	checkEnd(t, awaitEnd(t, p), task.PlanCompleted, 3, 0, 0, 0)
	checkDone(t, s, "c; a; b a")
}

// A plan that is cancelled ends: what waits is cancelled, what runs is told to stop.
func TestCancelPlan(t *testing.T) {
	t.Parallel()
	g := newGate()
	s := newSite(t, 1, handlers{"gate": g.run})
	p := newPlan(t, s)
	runs := p.Add(spec("gate", "a"))
	last := p.Add(spec("echo", "b"), runs)
	for range 600 { // more than are looked at in one go
		last = p.Add(spec("echo", "c"), last)
	}
	must(t, p.Ready(t.Context()))
	wait.Receive(t, patience, g.begun, "it does not run")
	for range 2 {
		must(t, p.Cancel(t.Context(), "wrong data"))
	}
	status := awaitEnd(t, p)
	checkEnd(t, status, task.PlanCancelled, 0, 0, 601, 0)
	if status.Ended[statemachine.Terminated] != 1 {
		t.Errorf("%v", status.Ended)
	}
	held, err := s.Task(t.Context(), last.ID())
	if err != nil || held.CancelReason != "wrong data" {
		t.Errorf("cancelled because of %q, %v", held.CancelReason, err)
	}
	p.Add(spec("echo", "late"))
	if err := p.Ready(t.Context()); !errors.Is(err, task.ErrPlanState) {
		t.Error(err)
	}
	if _, err := p.Retry(t.Context()); !errors.Is(err, task.ErrPlanState) {
		t.Error(err)
	}
}

// Wait ends with its context, and says how far the plan is.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, 0, nil)
	p := newPlan(t, s)
	p.Add(spec("echo", ""))
	must(t, p.Ready(t.Context()))
	status := &task.Plan{}
	var err error
	for patient := 50 * time.Millisecond; status.Left == 0 && patient < time.Minute; patient *= 2 { // until it has looked once
		ctx, cancel := context.WithTimeout(t.Context(), patient)
		status, err = p.Wait(ctx)
		cancel()
	}
	if !errors.Is(err, plan.ErrNotOver) || !errors.Is(err, context.DeadlineExceeded) || status.Left != 1 {
		t.Errorf("%+v, %v", status, err)
	}
}

// A task that runs adds tasks to its own plan, which need it and others; run again
// after a failure, it adds nothing twice.
func TestGrows(t *testing.T) {
	t.Parallel()
	var s *site
	s = newSite(t, 2, handlers{"grow": func(ctx context.Context, j *worker.Job) error {
		var id task.PlanID
		if _, err := fmt.Sscan(j.Task.Input, &id); err != nil {
			return err
		}
		p, err := plan.Load(ctx, s.Manager, id, plan.WithRequestKey(fmt.Sprint("grow ", j.Task.ID)))
		if err != nil {
			return err
		}
		left := p.Add(spec("echo", "left"))
		p.Add(spec("echo", "both"), plan.ID(j.Task.ID), left)
		if err := p.Send(ctx); err != nil {
			return err
		}
		if j.Task.Round == 0 {
			return errors.New("after adding")
		}
		fmt.Fprintln(j.Stdout(), "grown")
		return nil
	}})
	p := newPlan(t, s)
	p.Add(spec("grow", fmt.Sprint(p.ID())))
	checkEnd(t, run(t, p), task.PlanCompleted, 3, 0, 0, 0)
	results := map[string]int{}
	found, err := s.Results(t.Context(), storetest.All(t, s.PlanTasks(t.Context(), p.ID())))
	must(t, err)
	for _, r := range found {
		results[r.Text]++
	}
	if len(found) != 3 || results["both+grown+left"] != 1 {
		t.Errorf("%v", results)
	}
}

// A program that begins again with the same request key finds its plan as it left it.
func TestBeginsAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, 2, nil)
	build := func(portions int) (*plan.Plan, []*plan.Task) {
		p := newPlan(t, s, plan.WithRequestKey("mine"))
		var all []*plan.Task
		for i := range 2 {
			first := p.Add(spec("echo", fmt.Sprint(i)))
			all = append(all, first)
			for k := range 120 {
				all = append(all, p.Add(spec("echo", fmt.Sprint(k)), first))
			}
			if i < portions {
				must(t, p.Send(t.Context()))
			}
		}
		return p, all
	}
	first, _ := build(1) // and then it is gone
	again, tasks := build(2)
	if first.ID() != again.ID() {
		t.Fatalf("plan %d, then %d", first.ID(), again.ID())
	}
	checkEnd(t, run(t, again), task.PlanCompleted, 242, 0, 0, 0)
	third, same := build(2)
	checkEnd(t, run(t, third), task.PlanCompleted, 242, 0, 0, 0)
	for i := range tasks {
		if tasks[i].ID() != same[i].ID() {
			t.Fatalf("task %d is %d, then %d", i, tasks[i].ID(), same[i].ID())
		}
	}
}
