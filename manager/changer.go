package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// changer brings one event about for many tasks.
type changer struct {
	changing
	m      *Manager
	event  statemachine.Event
	reason string
}

// changePage is how many tasks are changed in one go, changeRead how many are
// read in one call.
const (
	changePage = store.MaxMoves
	changeRead = 50
)

// changeTries is how often a task that changes meanwhile is looked at again.
const changeTries = 5

func (m *Manager) change(
	ctx context.Context, event statemachine.Event, ids []int64, reason string, opts []ChangeOption,
) ([]Change, error) {
	options, err := m.changing(opts)
	if err != nil {
		return nil, err
	}
	if err := checkLine("reason", reason); err != nil {
		return nil, err
	}
	c := changer{changing: options, m: m, event: event, reason: reason}
	var done []Change
	for page := range slices.Chunk(ids, changePage) {
		changes, err := c.page(ctx, page)
		if err != nil {
			return done, fmt.Errorf("%s: %w", event, err)
		}
		done = append(done, changes...)
	}
	return done, nil
}

// page changes some tasks. Those that changed between reading and moving are
// read again.
func (c *changer) page(ctx context.Context, ids []int64) ([]Change, error) {
	changes := make([]Change, len(ids))
	left := make([]*Change, len(ids))
	for i, id := range ids {
		changes[i].ID, left[i] = id, &changes[i]
	}
	for try := 0; try < changeTries && len(left) > 0; try++ {
		if err := c.attempt(ctx, left); err != nil {
			return nil, err
		}
		left = slices.DeleteFunc(left, func(one *Change) bool { return !errors.Is(one.Err, statemachine.ErrConflict) })
	}
	return changes, nil
}

// attempt reads, decides and moves, once.
func (c *changer) attempt(ctx context.Context, changes []*Change) error {
	var moves, asks plan
	for part := range slices.Chunk(changes, changeRead) {
		seen, now, err := c.read(ctx, part)
		if err != nil {
			return err
		}
		refused, err := c.refusals(ctx, seen)
		if err != nil {
			return err
		}
		for i, one := range part {
			order, ok := c.decide(one, &seen[i], now)
			if why := refused[one.ID]; ok && why != nil {
				one.After, one.Err, ok = one.Before, why, false
			}
			switch {
			case !ok || c.dry:
			case order.AskStop:
				asks.add(one, order)
			default:
				moves.add(one, order)
			}
		}
	}
	if err := moves.carryOut(ctx, c.m, c.m.store.ApplyAll); err != nil {
		return err
	}
	return asks.carryOut(ctx, c.m, c.m.store.AskStop)
}

func (c *changer) read(ctx context.Context, part []*Change) ([]store.Inspection, statemachine.Time, error) {
	ids := make([]int64, len(part))
	for i, one := range part {
		ids[i] = one.ID
	}
	var now statemachine.Time
	seen, err := patiently(ctx, c.m, func() (found []store.Inspection, err error) {
		found, now, err = c.m.store.Inspect(ctx, ids)
		return found, err
	})
	for i := range seen {
		if seen[i].Absent() {
			seen[i].Err = c.m.absent(ctx, seen[i].ID)
		}
	}
	return seen, now, err
}

// decide says in one what will become of the task, and by which order; none if
// nothing will.
func (c *changer) decide(one *Change, t *store.Inspection, now statemachine.Time) (store.Order, bool) {
	switch {
	case t.Err != nil:
		one.Err = t.Err
		return store.Order{}, false
	case slices.Contains(t.Listed, statemachine.Archived) && t.State.Ended(): // by a client of the original
		t.State = statemachine.Archived
	}
	one.Before, one.After, one.Err = t.State, t.State, nil
	move, err := statemachine.Decide(&t.Task, statemachine.Occurrence{Event: c.event, Actor: statemachine.Manager}, now)
	if err != nil {
		one.Err = err
		return store.Order{}, false
	}
	one.After, one.Asked = move.To, move.AskStop
	return c.order(move, t.Bucket, now), true
}

// plan is orders with the changes they are for.
type plan struct {
	changes []*Change
	orders  []store.Order
}

func (p *plan) add(one *Change, order store.Order) {
	p.changes, p.orders = append(p.changes, one), append(p.orders, order)
}

// carryOut may send the orders several times: one that was made is recognised.
func (p *plan) carryOut(
	ctx context.Context, m *Manager, apply func(context.Context, ...store.Order) ([]store.Outcome, error),
) error {
	if len(p.orders) == 0 {
		return nil
	}
	outcomes, err := patiently(ctx, m, func() ([]store.Outcome, error) { return apply(ctx, p.orders...) })
	if err != nil {
		return err
	}
	for i, o := range outcomes {
		if o.Err != nil {
			one := p.changes[i]
			one.After, one.Asked, one.Err = one.Before, false, o.Err
		}
	}
	return nil
}
