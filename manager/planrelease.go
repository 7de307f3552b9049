package manager

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// refusals says, by id, which tasks of plans cannot be released by hand: those that
// wait for others, and those of a plan of which nothing is to start.
func (c *changer) refusals(ctx context.Context, seen []store.Inspection) (map[int64]error, error) {
	var ids []int64
	for i := range seen {
		if c.event == statemachine.Unblock && seen[i].Err == nil && seen[i].State == statemachine.Blocked {
			ids = append(ids, seen[i].ID)
		}
	}
	refused, plans := map[int64]error{}, map[int64]*store.Plan{}
	if len(ids) == 0 {
		return refused, nil
	}
	found, err := patiently(ctx, c.m, func() ([]map[string]string, error) {
		return c.m.store.Fields(ctx, ids, planField, needsField, waitsField, doomedByField)
	})
	if err != nil {
		return nil, err
	}
	for i, f := range found {
		id, plan := ids[i], number(f[planField])
		if plan == 0 {
			continue
		}
		if refused[id], err = c.m.refusal(ctx, plans, plan, id, f); err != nil {
			return nil, err
		}
	}
	return refused, nil
}

// refusal is nil for a task that may be released. It fills in the plans it reads.
func (m *Manager) refusal(
	ctx context.Context, plans map[int64]*store.Plan, plan, id int64, f map[string]string,
) (refused, err error) {
	if doomedBy := number(f[doomedByField]); doomedBy > 0 {
		return fmt.Errorf("task %d never runs, because of task %d: %w; retry that", id, doomedBy, ErrWaits), nil
	}
	if number(f[waitsField]) > 0 {
		unmet, err := m.unmet(ctx, needsOf(f[needsField]))
		return fmt.Errorf("task %d needs %s: %w", id, unmet, ErrWaits), err
	}
	if plans[plan] == nil {
		if plans[plan], err = patiently(ctx, m, func() (*store.Plan, error) { return m.store.Plan(ctx, plan) }); err != nil {
			return nil, err
		}
	}
	if state := plans[plan].State; state != store.PlanReady {
		return fmt.Errorf("task %d: %w", id, &PlanStateError{ID: plan, State: state}), nil
	}
	return nil, nil
}

// mostNamed bounds how many tasks an error names.
const mostNamed = 5

// unmet names the tasks that are still waited for, the last retries of those needed.
func (m *Manager) unmet(ctx context.Context, needs []Need) (string, error) {
	ids := make([]int64, len(needs))
	for i, n := range needs {
		ids[i] = n.Task
	}
	found, err := m.Results(ctx, ids...)
	if err != nil {
		return "", err
	}
	var names []string
	named := map[int64]bool{}
	for i, r := range found {
		met := r.End != statemachine.None && (r.End == statemachine.Succeeded || needs[i].On == NeedsAny || needs[i].On == NeedsFailure)
		if !met && !named[r.Task] {
			named[r.Task] = true
			names = append(names, strconv.FormatInt(r.Task, 10))
		}
	}
	if len(names) == 0 {
		return "nothing more, and a server is about to move it", nil
	}
	what := "task "
	if len(names) > 1 {
		what = "tasks "
	}
	more := ""
	if len(names) > mostNamed {
		more = fmt.Sprintf(" and %d more", len(names)-mostNamed)
		names = names[:mostNamed]
	}
	return what + strings.Join(names, ", ") + more, nil
}
