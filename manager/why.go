package manager

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/tdf-go/tdf/internal/ops/why"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Explanation are reasons, the most important first. docs/WHY.md lists their
// kinds, and what can be changed.
type Explanation = why.Explanation

// Reason is one thing to say about where a task is, or about a queue.
type Reason = why.Reason

// Remedy is a change that takes a reason away.
type Remedy = why.Remedy

// Why says why a task is where it is: why it has not been claimed, and what would make
// it claimable; how its round goes; or by which rule it ended. What it reads is not of
// one moment. The error matches [task.ErrNoTask] if there is no such task,
// [task.ErrDamaged] if its record is spoilt.
func (m *Manager) Why(ctx context.Context, id int64) (Explanation, error) {
	t, err := m.store.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	if t.Err != nil {
		return nil, t.Err
	}
	situation := m.readSituation
	if t.State.Terminal() { // nothing around it matters any more
		situation = m.readMoment
	}
	s, err := situation(ctx)
	if err != nil {
		return nil, err
	}
	s.Task, s.Record = *t, *read(t)
	if err := m.situatePlan(ctx, &s); err != nil {
		return nil, err
	}
	if err := m.listed(ctx, &s); err != nil {
		return nil, err
	}
	return why.Explain(s)
}

// WhyQueue says what keeps the tasks of a queue from being claimed, how many
// wait, and which live workers may take from it. The error matches [task.ErrNoQueue]
// if there is no queue of that name.
func (m *Manager) WhyQueue(ctx context.Context, name string) (Explanation, error) {
	if _, err := m.store.Queue(ctx, name); err != nil {
		return nil, err
	}
	s, err := m.readSituation(ctx)
	if err != nil {
		return nil, err
	}
	return why.ExplainQueue(s, name)
}

// listed notes whether an open task is in line.
func (m *Manager) listed(ctx context.Context, s *why.Situation) error {
	if s.Task.State != statemachine.Open {
		return nil
	}
	found, _, err := m.store.Inspect(ctx, []int64{s.Task.ID})
	s.Unlisted = len(found) == 1 && found[0].Task.State == statemachine.Open && !found[0].InBucket
	return err
}

// readSituation reads what there is beside the task.
func (m *Manager) readSituation(ctx context.Context) (s why.Situation, err error) {
	s.Claims = func(claims []tasks.DryClaim) ([]tasks.Hindrance, error) { return m.store.DryClaims(ctx, claims) }
	if s.Queues, _, err = m.store.Queues(ctx); err != nil {
		return s, err
	}
	if s.Nodes, err = m.store.NodeRecords(ctx); err != nil {
		return s, err
	}
	if s.Grace, _, err = m.store.Grace(ctx); err != nil {
		return s, err
	}
	if s.ServerSeen, err = m.store.ServerSeen(ctx); err != nil {
		return s, err
	}
	if s.Clock, err = m.store.LastStep(ctx); err != nil {
		return s, err
	}
	lease, err := m.store.Lease(ctx)
	if err != nil {
		return s, err
	}
	if s.Workers, s.Now, err = m.store.Workers(ctx); err != nil {
		return s, err
	}
	for i := range s.Workers {
		s.Workers[i] = why.Seen(s.Workers[i], s.Now, lease)
	}
	return s, nil
}

// readMoment reads what time it is.
func (m *Manager) readMoment(ctx context.Context) (s why.Situation, err error) {
	if s.Clock, err = m.store.LastStep(ctx); err == nil {
		s.Now, err = m.store.Now(ctx)
	}
	return s, err
}

// situatePlan reads what the plan of a task has to do with where the task is.
func (m *Manager) situatePlan(ctx context.Context, s *why.Situation) error {
	if s.Record.Plan == 0 {
		return nil
	}
	if err := m.situateCause(ctx, s); err != nil || s.Task.State != statemachine.Blocked {
		return err
	}
	p, err := m.store.Plan(ctx, s.Record.Plan)
	switch {
	case errors.Is(err, task.ErrNoPlan):
		p = &task.Plan{State: "not there"}
	case err != nil:
		return err
	}
	s.Plan = *p
	if failed := number(p.HeldBy); failed != 0 && p.State == task.PlanHeld {
		fields, err := m.store.Fields(ctx, []int64{failed}, stepField)
		if err != nil {
			return err
		}
		s.FailedStep = fields[0][stepField]
	}
	return m.situateNeeds(ctx, s)
}

// situateCause reads the task because of which this one never runs.
func (m *Manager) situateCause(ctx context.Context, s *why.Situation) error {
	if s.Record.DoomedBy == 0 {
		return nil
	}
	found, err := m.Tasks(ctx, []int64{s.Record.DoomedBy})
	if err == nil && found[0] != nil && found[0].Err == nil {
		s.Cause = found[0]
	}
	return err
}

// situateNeeds reads which tasks have not told a blocked one of their end yet, and whether an operator holds it: a task on
// the list to move is not held.
func (m *Manager) situateNeeds(ctx context.Context, s *why.Situation) error {
	looked, err := m.store.Planned(ctx, s.Record.Plan, []int64{s.Task.ID}, 0)
	if err != nil {
		return err
	}
	s.HandHeld = looked[0].Held && !looked[0].Freed
	s.Needs, err = m.waitedFor(ctx, &looked[0])
	return err
}

// waitedFor are the tasks that are still to tell one of their end: the last retries of those that it needs.
func (m *Manager) waitedFor(ctx context.Context, t *plans.Planned) (needs []why.Need, err error) {
	// of is for whom each task is looked at: itself, or one that it repeats.
	of, on, waits := map[int64]int64{}, map[int64]task.When{}, map[int64]bool{}
	for _, n := range t.Needs {
		of[n.Task], on[n.Task] = n.Task, n.On
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
