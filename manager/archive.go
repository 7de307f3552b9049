package manager

import (
	"context"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// archive closes the books on tasks and returns how many it archived. Their
// handlers have been called, so it finishes also when ctx ends.
func (p *statePass) archive(ctx context.Context, tasks []store.Seen, now statemachine.Time) (int, error) {
	if len(tasks) == 0 {
		return 0, nil
	}
	orders := make([]store.Order, 0, len(tasks))
	for i := range tasks {
		what := statemachine.Occurrence{Event: statemachine.Archive, Actor: statemachine.Manager}
		move, err := statemachine.Decide(&tasks[i].Task, what, now)
		if err != nil {
			p.m.log.Warn("task not archived", "task", tasks[i].ID, "error", err)
			continue
		}
		orders = append(orders, store.Order{Move: move, Writer: p.m.name})
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	outcomes, err := p.m.store.ApplyAll(last, orders...)
	return p.m.archived(outcomes), err
}

// archived notes what became of the moves.
func (m *Manager) archived(outcomes []store.Outcome) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, o := range outcomes {
		if o.Err != nil {
			m.log.Info("task not archived: it has changed", "task", o.ID, "error", o.Err)
			continue
		}
		n++
		delete(m.book.entries, o.ID)
	}
	m.stats.Archived += n
	return n
}
