package manager

import (
	"context"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// pass handles and archives what has ended, once through all outcomes. It
// returns the number of tasks it archived.
func (m *Manager) pass(ctx context.Context, h *Handlers, number int) (int, error) {
	counts, err := m.store.Count(ctx)
	if err != nil {
		return 0, err
	}
	processed := 0
	for _, outcome := range statemachine.Outcomes() {
		if counts[outcome] == 0 {
			continue
		}
		m.log.Debug("processing", "tasks", counts[outcome], "state", outcome)
		p := statePass{m: m, outcome: outcome, handler: h.of(outcome), number: number}
		n, err := p.all(ctx, counts[outcome])
		if processed += n; err != nil {
			return processed, err
		}
	}
	m.mu.Lock()
	m.book.forget(number)
	m.mu.Unlock()
	return processed, nil
}

// statePass is the part of a pass that is about one outcome.
type statePass struct {
	m       *Manager
	outcome statemachine.State
	handler Handler
	number  int
}

// all pages through the tasks that were there when the pass began; those that
// come meanwhile wait for the next one, or they would starve the other states.
// Tasks that stay are paged past.
func (p *statePass) all(ctx context.Context, total int64) (archived int, err error) {
	for seen, stay := int64(0), 0; seen < total && ctx.Err() == nil; {
		page, err := p.m.store.Listed(ctx, p.outcome, stay, p.m.batchSize())
		if err != nil || len(page.Tasks) == 0 {
			return archived, err
		}
		n, err := p.page(ctx, page)
		if archived += n; err != nil {
			return archived, err
		}
		seen += int64(len(page.Tasks))
		stay += len(page.Tasks) - n
	}
	return archived, ctx.Err()
}

// page handles a page of tasks and returns how many were archived.
func (p *statePass) page(ctx context.Context, page store.Batch) (int, error) {
	ready := p.ready(page.Tasks)
	if p.handler == nil {
		return p.archive(ctx, ready, page.Now)
	}
	archived := 0
	for len(ready) > 0 && ctx.Err() == nil {
		n := min(len(ready), readAtOnce)
		handled, err := p.handle(ctx, ready[:n])
		if err != nil {
			return archived, err
		}
		k, err := p.archive(ctx, handled, page.Now)
		if archived += k; err != nil {
			return archived, err
		}
		ready = ready[n:]
	}
	return archived, nil
}

// readAtOnce bounds how many tasks are read with their outputs, and how many
// are handled before they are archived.
const readAtOnce = 16

// ready leaves out what cannot be handled now.
func (p *statePass) ready(tasks []store.Seen) []store.Seen {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	now := time.Now()
	ready := make([]store.Seen, 0, len(tasks))
	for _, t := range tasks {
		switch {
		case t.Err != nil:
			p.m.log.Warn("damaged task passed over", "task", t.ID, "error", t.Err)
		case t.State != p.outcome:
			p.m.log.Debug("task passed over: its set and its record disagree", "task", t.ID,
				"listed", p.outcome, "state", t.State)
		case !p.m.book.waits(t.ID, now, p.number):
			ready = append(ready, t)
		}
	}
	return ready
}

// handle calls the handler and returns the tasks it has dealt with.
func (p *statePass) handle(ctx context.Context, tasks []store.Seen) ([]store.Seen, error) {
	ids := make([]int64, len(tasks))
	for i := range tasks {
		ids[i] = tasks[i].ID
	}
	full, err := p.m.store.Tasks(ctx, ids)
	if err != nil {
		return nil, err
	}
	handled := make([]store.Seen, 0, len(tasks))
	for i, t := range full {
		if t == nil || t.Err != nil || t.State != p.outcome || ctx.Err() != nil {
			continue // changed since it was listed; the next pass sees
		}
		if p.call(ctx, t) {
			tasks[i] = t.Seen
			handled = append(handled, t.Seen)
		}
	}
	return handled, nil
}

// call calls the handler, unless it has dealt with the task in an earlier pass
// that could not archive it. It reports whether the task may be archived.
func (p *statePass) call(ctx context.Context, t *store.Task) bool {
	m := p.m
	m.mu.Lock()
	before := m.book.handledBefore(t.ID, t.Rev)
	m.mu.Unlock()
	if before {
		return true
	}
	err := p.handler(ctx, m, newTask(t))
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		e := m.book.entry(t.ID)
		e.handled, e.pass, e.next = t.Rev, p.number, time.Time{}
		return true
	}
	if ctx.Err() != nil {
		return false // the handler was told to end
	}
	attempts, pause := m.book.fail(t.ID, err, time.Now(), p.number)
	m.stats.HandlerErrors++
	m.log.Warn("handler returned an error; the task stays for a later round",
		"task", t.ID, "state", p.outcome, "attempt", attempts, "pause", pause, "error", err)
	return false
}
