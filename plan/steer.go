package plan

import (
	"context"
	"fmt"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// Ready sends what was added and lets the plan run (zk-plan: mark-as-ready). A plan
// without tasks is completed at once. See [manager.Manager.ReadyPlan].
func (p *Plan) Ready(ctx context.Context) error {
	if err := p.Send(ctx); err != nil {
		return err
	}
	return p.m.ReadyPlan(ctx, p.id)
}

// Status reads the plan: its State is manager.PlanCompleted if all of it was done
// (zk-plan: plan-completed?).
func (p *Plan) Status(ctx context.Context) (Status, error) {
	s, err := p.m.Plan(ctx, p.id)
	if err != nil {
		return Status{ID: p.id}, err
	}
	return *s, nil
}

// Wait waits until all tasks of the plan have ended, whatever way: how the plan came
// out is the State of the answer. A plan that holds is waited for. The error is
// that of ctx, with the status read last; it matches [ErrNotOver].
func (p *Plan) Wait(ctx context.Context) (Status, error) {
	s, err := p.m.WaitPlan(ctx, p.id, nil)
	if s == nil {
		s = &Status{ID: p.id}
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ErrNotOver, err)
	}
	return *s, err
}

// Cancel calls the plan off; see [manager.Manager.CancelPlan].
func (p *Plan) Cancel(ctx context.Context, reason string) error {
	return p.m.CancelPlan(ctx, p.id, reason)
}

// Hold lets nothing more of the plan start; see [manager.Manager.HoldPlan].
func (p *Plan) Hold(ctx context.Context, reason string) error {
	return p.m.HoldPlan(ctx, p.id, reason)
}

// Resume lets a held plan go on; see [manager.Manager.ResumePlan].
func (p *Plan) Resume(ctx context.Context) error { return p.m.ResumePlan(ctx, p.id) }

// Retry retries what has not succeeded; see [manager.Manager.RetryPlan].
func (p *Plan) Retry(ctx context.Context) ([]manager.Retried, error) {
	return p.m.RetryPlan(ctx, p.id)
}

// Result is what a task of the plan has brought, or the last one that it was
// retried by. The error matches [ErrNotSent] or [ErrForeign], or is a *[ResultError]
// that says why there is none.
func (p *Plan) Result(ctx context.Context, of Dep) (string, error) {
	id, err := p.idOf(of)
	if err != nil {
		return "", err
	}
	found, err := p.m.Results(ctx, id)
	if err != nil {
		return "", err
	}
	if r := found[0]; r.End != statemachine.Succeeded || r.Cut {
		return "", &ResultError{Task: r.Task, End: r.End, Cut: r.Cut}
	}
	return found[0].Text, nil
}

func (p *Plan) idOf(of Dep) (int64, error) {
	if of == nil {
		return 0, fmt.Errorf("the result of nothing: %w", ErrForeign)
	}
	d, wrong := of.need(p)
	switch {
	case wrong != "":
		return 0, fmt.Errorf("a result for plan %d: %s: %w", p.id, wrong, ErrForeign)
	case d.of == nil:
		return d.need.Task, nil
	}
	if id := d.of.ID(); id != 0 {
		return id, nil
	}
	return 0, fmt.Errorf("task %d of the plan (%s): %w", d.of.index+1, d.of.spec.Program, ErrNotSent)
}
