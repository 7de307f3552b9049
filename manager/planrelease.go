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
		return c.m.store.Fields(ctx, ids, planField, waitsField, doomedByField)
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
		unmet, err := patiently(ctx, m, func() (string, error) { return m.unmet(ctx, plan, id) })
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

// unmet names the tasks that one of a plan still waits for.
func (m *Manager) unmet(ctx context.Context, plan, id int64) (string, error) {
	looked, err := m.store.Planned(ctx, plan, []int64{id}, 0)
	if err != nil {
		return "", err
	}
	needs, err := m.waitedFor(ctx, &looked[0])
	if err != nil {
		return "", err
	}
	names := make([]string, len(needs))
	for i, n := range needs {
		names[i] = strconv.FormatInt(n.ID, 10)
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
