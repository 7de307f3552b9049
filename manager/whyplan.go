package manager

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/tdf-go/tdf/internal/ops/why"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// situatePlan reads what the plan of a task has to do with where the task is.
func (m *Manager) situatePlan(ctx context.Context, found *why.Task, t *store.Task) error {
	plan := number(t.Fields[planField])
	if plan == 0 {
		return nil
	}
	if err := m.situateCause(ctx, found, t); err != nil || t.State != statemachine.Blocked {
		return err
	}
	p, err := m.store.Plan(ctx, plan)
	switch {
	case errors.Is(err, store.ErrNoPlan):
		p = &store.Plan{State: "not there"}
	case err != nil:
		return err
	}
	found.Plan = why.Plan{ID: plan, State: why.PlanState(p.State), HeldBy: p.HeldBy}
	if p.State == store.PlanHeld {
		found.Plan.FailedTask, _ = strconv.ParseInt(p.HeldBy, 10, 64)
		if err := m.situateFailure(ctx, &found.Plan); err != nil {
			return err
		}
	}
	return m.situateNeeds(ctx, found, t)
}

// situateFailure reads what the task is called because of which a plan holds, if there is one.
func (m *Manager) situateFailure(ctx context.Context, p *why.Plan) error {
	if p.FailedTask == 0 {
		return nil
	}
	fields, err := m.store.Fields(ctx, []int64{p.FailedTask}, stepField)
	if err == nil {
		p.FailedStep = fields[0][stepField]
	}
	return err
}

// situateCause reads the task because of which this one never runs.
func (m *Manager) situateCause(ctx context.Context, found *why.Task, t *store.Task) error {
	id := number(t.Fields[doomedByField])
	if id == 0 {
		return nil
	}
	found.Cause = why.Cause{ID: id, Skipped: t.Fields[skippedField] == "1"}
	tasks, err := m.store.Tasks(ctx, []int64{id})
	if err != nil || tasks[0] == nil || tasks[0].Err != nil {
		return err
	}
	cause := situated(tasks[0])
	found.Cause.End, found.Cause.Step = cause.End(), tasks[0].Fields[stepField]
	if n := len(cause.Rounds); n > 0 {
		found.Cause.Round = &cause.Rounds[n-1]
	}
	return nil
}

// situateNeeds reads which tasks are still to tell a blocked one of their end, and whether an operator holds it: the
// plan goes on with one that is to be moved with it.
func (m *Manager) situateNeeds(ctx context.Context, found *why.Task, t *store.Task) error {
	looked, err := m.store.Planned(ctx, found.Plan.ID, []int64{t.ID}, 0)
	if err != nil {
		return err
	}
	found.HandHeld = looked[0].Held && !looked[0].Freed
	found.Needs, err = m.waitedFor(ctx, &looked[0])
	return err
}

// waitedFor are the tasks that are still to tell one of their end: the last retries of those that it needs.
func (m *Manager) waitedFor(ctx context.Context, t *store.Planned) (needs []why.Need, err error) {
	// of is for whom each task is looked at: itself, or one that it repeats.
	of, on, waits := map[int64]int64{}, map[int64]string{}, map[int64]bool{}
	for _, n := range t.Needs {
		of[n.Task], on[n.Task] = n.Task, string(n.On)
	}
	for len(of) > 0 {
		ids, next := slices.Sorted(maps.Keys(of)), map[int64]int64{}
		looked, err := m.store.Planned(ctx, t.Plan, ids, t.ID)
		if err != nil {
			return nil, err
		}
		for i := range looked {
			l, need := &looked[i], of[ids[i]]
			waits[need] = waits[need] || l.Names > 0
			switch {
			case l.RetriedBy > l.ID: // a retry is always newer
				next[l.RetriedBy] = need
			case waits[need]:
				needs = append(needs, why.Need{ID: l.ID, Step: l.Step, State: l.State, On: on[need]})
			}
		}
		of = next
	}
	return needs, nil
}
