package manager

import (
	"context"
	"errors"
	"slices"
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
	if err := ctx.Err(); err != nil {
		return archived, err
	}
	return archived, p.m.giveBack(ctx)
}

// page handles a page of tasks and returns how many were archived.
func (p *statePass) page(ctx context.Context, page store.Batch) (int, error) {
	ready := p.ready(page.Tasks)
	if p.handler == nil {
		return p.unhandled(ctx, ready, page.Now)
	}
	archived := 0
	for len(ready) > 0 && ctx.Err() == nil {
		n, began := min(len(ready), p.m.handful.size()), time.Now()
		handled, err := p.handle(ctx, ready[:n])
		if err != nil {
			return archived, err
		}
		k, err := p.archive(ctx, handled, page.Now)
		if archived += k; err != nil {
			return archived, err
		}
		p.m.handful.took(n, time.Since(began))
		ready = ready[n:]
	}
	return archived, nil
}

// unhandled archives tasks that nobody here wants to see. It needs no lease, and
// leaves alone what another manager handles: what that one was granted after
// this was read is refused by its revision.
func (p *statePass) unhandled(ctx context.Context, tasks []store.Seen, now statemachine.Time) (int, error) {
	ids := make([]int64, len(tasks))
	for i := range tasks {
		ids[i] = tasks[i].ID
	}
	others, err := p.m.store.Handled(ctx, &p.m.others, p.m.cfg.Manager.HandlingLease, ids)
	if err != nil {
		return 0, err
	}
	free := slices.DeleteFunc(tasks, func(t store.Seen) bool { return others[t.ID] })
	return p.archive(ctx, free, now)
}

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
	h, err := p.m.lease(ctx)
	if err != nil {
		return nil, err
	}
	full, err := p.granted(ctx, h, tasks)
	if err != nil {
		return nil, err
	}
	handled := make([]store.Seen, 0, len(full))
	for _, t := range full {
		if t == nil || t.Err != nil || t.State != p.outcome || ctx.Err() != nil {
			continue // changed since it was listed; the next pass sees
		}
		if !h.lost() && p.call(ctx, h, t) {
			handled = append(handled, t.Seen)
		}
	}
	if len(handled) > 0 && h.lost() {
		p.m.log.Warn("handled tasks are not archived: another manager may have them", "tasks", len(handled))
		return nil, nil // the next pass finds out, and need not call the handler again
	}
	return handled, nil
}

// granted reads those of the tasks that no other living manager handles: they
// are this one's now.
func (p *statePass) granted(ctx context.Context, h *handling, tasks []store.Seen) ([]*store.Task, error) {
	ids := make([]int64, len(tasks))
	for i := range tasks {
		ids[i] = tasks[i].ID
	}
	ids, err := h.take(ctx, p.outcome, ids)
	if errors.Is(err, ErrHandlingLost) {
		h.lose(err)
		return nil, nil // the next pass has another lease
	}
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return p.m.store.Tasks(ctx, ids)
}

// call calls the handler, unless it has dealt with the task in an earlier pass
// that could not archive it. It reports whether the task may be archived.
func (p *statePass) call(ctx context.Context, h *handling, t *store.Task) bool {
	m := p.m
	m.mu.Lock()
	before := m.book.handledBefore(t.ID, t.Rev)
	m.mu.Unlock()
	var err error
	if !before {
		within, end := h.context(ctx)
		err = p.handler(within, m, newTask(t))
		end()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		e := m.book.entry(t.ID)
		e.handled, e.pass, e.next = t.Rev, p.number, time.Time{}
		return true
	}
	if ctx.Err() != nil || h.life.Err() != nil {
		m.log.Debug("handler was told to end", "task", t.ID, "error", err)
		return false
	}
	attempts, pause := m.book.fail(t.ID, err, time.Now(), p.number)
	m.stats.HandlerErrors++
	m.log.Warn("handler returned an error; the task stays for a later round",
		"task", t.ID, "state", p.outcome, "attempt", attempts, "pause", pause, "error", err)
	return false
}
