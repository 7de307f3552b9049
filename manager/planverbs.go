package manager

import (
	"context"
	"errors"
	"strconv"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// ReadyPlan lets the tasks of a plan run; more may be added later. One that was
// ready before stays as it is, also if it is held (see [Manager.ResumePlan]) or
// over: a program that begins again may call it again. A plan without tasks is
// completed at once. The error matches [ErrNoPlan], or [ErrPlanState] if it was
// cancelled.
func (m *Manager) ReadyPlan(ctx context.Context, id int64) error {
	p, err := patiently(ctx, m, func() (*store.Plan, error) { return m.store.Plan(ctx, id) })
	if err != nil || p.State == store.PlanHeld {
		return err
	}
	return m.steer(ctx, id, store.PlanReady, "")
}

// HoldPlan lets nothing more of a ready plan start, until [Manager.ResumePlan]:
// its open tasks are put aside, those that run go on. Called again it puts aside
// what has been opened again meanwhile. The error matches [ErrNoPlan] or
// [ErrPlanState]; the reason, a line of text or empty, is recorded.
func (m *Manager) HoldPlan(ctx context.Context, id int64, reason string, opts ...ChangeOption) error {
	c, err := m.changing(opts)
	if err != nil {
		return err
	}
	if err := checkLine("reason", reason); err != nil {
		return err
	}
	if err := m.steer(ctx, id, store.PlanHeld, holder(c.by, reason)); err != nil {
		return err
	}
	return m.changePlan(ctx, id, statemachine.Hold, orText(reason, "its plan is held by "+c.by), opts)
}

// holder says who holds a plan, and why; never as the id of a task, which would
// mean that it holds because of that one.
func holder(by, reason string) string {
	if reason != "" {
		return by + ": " + reason
	}
	if _, err := strconv.ParseInt(by, 10, 64); err == nil {
		return "manager " + by
	}
	return by
}

// ResumePlan lets a held plan go on, whatever it was held by. What needs a task that
// failed goes on waiting until that is retried. The error matches [ErrNoPlan], or
// [ErrPlanState] if the plan is neither held nor ready.
func (m *Manager) ResumePlan(ctx context.Context, id int64) error {
	p, err := patiently(ctx, m, func() (*store.Plan, error) { return m.store.Plan(ctx, id) })
	if err != nil {
		return err
	}
	if p.State != store.PlanHeld && p.State != store.PlanReady {
		return &store.PlanStateError{ID: id, State: p.State}
	}
	return m.steer(ctx, id, store.PlanReady, "")
}

// CancelPlan calls a plan off: whatever waits is cancelled, the workers of what
// runs are told to stop, and nothing can be added or retried. Called again it
// finishes what was cut short. The error matches [ErrNoPlan], or [ErrPlanState]
// if the plan was over; the reason, a line of text or empty, is recorded with
// the tasks.
func (m *Manager) CancelPlan(ctx context.Context, id int64, reason string, opts ...ChangeOption) error {
	c, err := m.changing(opts)
	if err != nil {
		return err
	}
	if err := checkLine("reason", reason); err != nil {
		return err
	}
	if err := m.steer(ctx, id, store.PlanCancelled, ""); err != nil {
		return err
	}
	return m.changePlan(ctx, id, statemachine.Cancel, orText(reason, "its plan was cancelled by "+c.by), opts)
}

func (m *Manager) steer(ctx context.Context, id int64, to store.PlanState, by string) error {
	state, err := patiently(ctx, m, func() (store.PlanState, error) { return m.store.SteerPlan(ctx, id, to, by) })
	if err == nil {
		m.log.Info("steered plan", "plan", id, "state", state)
	}
	return err
}

// planPage is how many tasks of a plan are looked at in one go.
const planPage = 500

// changePlan brings an event about for the tasks of a plan that it is meant for.
func (m *Manager) changePlan(ctx context.Context, id int64, event statemachine.Event, reason string, opts []ChangeOption) error {
	return m.eachTask(ctx, id, []string{"state"}, func(ids []int64, found []map[string]string) error {
		var those []int64
		for i, fields := range found {
			state := statemachine.State(fields["state"])
			if state == statemachine.Open || event == statemachine.Cancel && state.Valid() && !state.Settled() {
				those = append(those, ids[i])
			}
		}
		changes, err := m.change(ctx, event, those, reason, opts)
		if err != nil {
			return err
		}
		return failedChanges(changes)
	})
}

// failedChanges are the errors of tasks that were not changed, but for those that
// have gone on to where there is nothing to change.
func failedChanges(changes []Change) error {
	var all []error
	for i := range changes {
		err := changes[i].Err
		if _, moved := errors.AsType[*statemachine.TransitionError](err); err != nil && !moved {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// eachTask reads fields of the tasks of a plan, page by page.
func (m *Manager) eachTask(ctx context.Context, plan int64, names []string, look func([]int64, []map[string]string) error) error {
	for offset := 0; ; offset += planPage {
		ids, err := patiently(ctx, m, func() ([]int64, error) { return m.store.PlanTasks(ctx, plan, offset, planPage) })
		if err != nil || len(ids) == 0 {
			return err
		}
		found, err := patiently(ctx, m, func() ([]map[string]string, error) { return m.store.Fields(ctx, ids, names...) })
		if err != nil {
			return err
		}
		if err := look(ids, found); err != nil {
			return err
		}
	}
}
