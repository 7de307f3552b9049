package manager

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/store/tasks"
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
		p := statePass{m: m, outcome: outcome, handler: h.of(outcome), number: number}
		if counts[outcome] == 0 || p.handler == nil {
			continue
		}
		m.log.Debug("processing", "tasks", counts[outcome], "state", outcome)
		n, err := p.all(ctx, counts[outcome])
		if processed += n; err != nil {
			return processed, err
		}
	}
	m.mu.Lock()
	m.retries.forget(number)
	m.mu.Unlock()
	return processed, nil
}

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
	if p.m.picks != nil {
		return p.selected(ctx, p.m.picks[p.outcome])
	}
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

func (p *statePass) page(ctx context.Context, page tasks.Batch) (int, error) {
	ready := p.ready(page.Tasks)
	if p.handler.archives() {
		return p.unread(ctx, ready, page.Now)
	}
	return p.each(ctx, headerIDs(ready), page.Now)
}

// each handles tasks and archives them, a few at a time.
func (p *statePass) each(ctx context.Context, ready []int64, now statemachine.Time) (archived int, err error) {
	for len(ready) > 0 && ctx.Err() == nil {
		n, began := min(len(ready), p.m.batch.size()), time.Now()
		handled, err := p.handle(ctx, ready[:n])
		if err != nil {
			return archived, err
		}
		k, err := p.archive(ctx, handled, now)
		if archived += k; err != nil {
			return archived, err
		}
		p.m.batch.took(n, time.Since(began))
		ready = ready[n:]
	}
	return archived, nil
}

// unread archives tasks that nobody here wants to see. It needs no lease, and
// leaves alone what another manager handles: what that one was granted after
// this was read is refused by its revision.
func (p *statePass) unread(ctx context.Context, found []tasks.TaskHeader, now statemachine.Time) (int, error) {
	others, err := p.m.store.Handled(ctx, &p.m.others, p.m.opt.HandlingLease, headerIDs(found))
	if err != nil {
		return 0, err
	}
	free := slices.DeleteFunc(found, func(t tasks.TaskHeader) bool { return others[t.ID] })
	return p.archive(ctx, free, now)
}

// ready leaves out what cannot be handled now.
func (p *statePass) ready(found []tasks.TaskHeader) []tasks.TaskHeader {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	now := time.Now()
	ready := make([]tasks.TaskHeader, 0, len(found))
	for _, t := range found {
		switch {
		case t.Err != nil:
			p.m.log.Warn("damaged task passed over", "task", t.ID, "error", t.Err)
		case t.State != p.outcome:
			p.m.log.Debug("task passed over: its set and its record disagree", "task", t.ID,
				"listed", p.outcome, "state", t.State)
		case !p.m.retries.waits(t.ID, now, p.number):
			ready = append(ready, t)
		}
	}
	return ready
}

// handle calls the handler and returns the tasks it has dealt with.
func (p *statePass) handle(ctx context.Context, found []int64) ([]tasks.TaskHeader, error) {
	h, err := p.m.lease(ctx)
	if err != nil {
		return nil, err
	}
	full, err := p.granted(ctx, h, found)
	if err != nil {
		return nil, err
	}
	handled := make([]tasks.TaskHeader, 0, len(full))
	for _, t := range full {
		if t == nil || t.Err != nil || t.State != p.outcome || ctx.Err() != nil {
			continue // changed since it was listed; the next pass sees
		}
		if !h.lost() && p.call(ctx, h, t) {
			handled = append(handled, *t)
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
func (p *statePass) granted(ctx context.Context, h *handling, found []int64) ([]*tasks.TaskHeader, error) {
	ids, err := h.take(ctx, p.outcome, found)
	if errors.Is(err, ErrHandlingLost) {
		h.lose(err)
		return nil, nil // the next pass has another lease
	}
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return p.m.store.TasksByID(ctx, ids)
}

func headerIDs(of []tasks.TaskHeader) []int64 {
	ids := make([]int64, len(of))
	for i := range of {
		ids[i] = of[i].ID
	}
	return ids
}

// call calls the handler, unless it has dealt with the task in an earlier pass
// that could not archive it. It reports whether the task may be archived.
func (p *statePass) call(ctx context.Context, h *handling, t *tasks.TaskHeader) bool {
	m := p.m
	m.mu.Lock()
	before := m.retries.handledBefore(t.ID, t.Rev)
	m.mu.Unlock()
	var err error
	if !before {
		within, end := h.context(ctx)
		err = p.handler(within, read(t))
		end()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		e := m.retries.entry(t.ID)
		e.handled, e.pass, e.Next = t.Rev, p.number, time.Time{}
		return true
	}
	if ctx.Err() != nil || h.life.Err() != nil {
		m.log.Debug("handler was told to end", "task", t.ID, "error", err)
		return false
	}
	attempts, pause := m.retries.fail(t.ID, err, time.Now(), p.number)
	m.stats.HandlerErrors++
	m.log.Warn("handler returned an error; the task stays for a later round",
		"task", t.ID, "state", p.outcome, "attempt", attempts, "pause", pause, "error", err)
	return false
}

// batchSizer says how many tasks are read with their outputs, handled before they are archived, and kept from other managers
// meanwhile. It is small where handlers take their time or outputs are large. It doubles each time that all of it took
// hardly longer than the calls to Redis, which cost the same for few tasks.
type batchSizer struct{ more int }

const (
	readAtOnce = 16
	mostAtOnce = 64
	// shortTime is within what a batch is done if handlers do little.
	shortTime = 20 * time.Millisecond
)

func (h *batchSizer) size() int { return max(readAtOnce, h.more) }

// took hears how long n tasks took. From fewer than a batch nothing is learned but that they took too long.
func (h *batchSizer) took(n int, d time.Duration) {
	switch {
	case d > shortTime:
		h.more = readAtOnce
	case n >= h.size():
		h.more = min(2*n, mostAtOnce)
	}
}

// archive closes the books on tasks and returns how many it archived. Their
// handlers have been called, so it finishes also when ctx ends.
func (p *statePass) archive(ctx context.Context, found []tasks.TaskHeader, now statemachine.Time) (int, error) {
	if len(found) == 0 {
		return 0, nil
	}
	commits := make([]tasks.Commit, 0, len(found))
	for i := range found {
		what := statemachine.Occurrence{Event: statemachine.Archive, Actor: statemachine.Manager}
		move, err := statemachine.Decide(&found[i].Task, what, now)
		if err != nil {
			p.m.log.Warn("task not archived", "task", found[i].ID, "error", err)
			continue
		}
		commits = append(commits, tasks.Commit{Move: move, Writer: p.m.name})
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	outcomes, err := p.m.store.ApplyAll(last, commits...)
	return p.m.archived(outcomes), err
}

func (m *Manager) archived(outcomes []tasks.Outcome) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, o := range outcomes {
		if o.Err != nil {
			m.log.Info("task not archived: it has changed", "task", o.ID, "error", o.Err)
			continue
		}
		n++
		delete(m.retries.entries, o.ID)
	}
	m.stats.Archived += n
	return n
}

// handlerRetries remembers tasks whose handler returned an error, and those whose handler
// is done while the archiving did not work out.
type handlerRetries struct {
	base, limit time.Duration
	entries     map[int64]*entry
}

type entry struct {
	RetryingTask

	// handled is the revision the handler has dealt with, or -1.
	handled int64
	// pass is the last one that met the task.
	pass int
}

// shortestBackoff keeps a manager with handler_backoff = 0 from spinning.
const shortestBackoff = 10 * time.Millisecond

func newHandlerRetries(c Settings) *handlerRetries {
	base := max(c.HandlerBackoff, shortestBackoff)
	return &handlerRetries{base: base, limit: max(c.HandlerBackoffMax, base), entries: map[int64]*entry{}}
}

func (b *handlerRetries) entry(id int64) *entry {
	e, ok := b.entries[id]
	if !ok {
		e = &entry{RetryingTask: RetryingTask{ID: id}, handled: -1}
		b.entries[id] = e
	}
	return e
}

func (b *handlerRetries) waits(id int64, now time.Time, pass int) bool {
	e, ok := b.entries[id]
	if !ok {
		return false
	}
	e.pass = pass
	return now.Before(e.Next)
}

// handledBefore reports whether the handler has dealt with this revision, or
// with the one before, and only this manager's new lease has raised it since.
func (b *handlerRetries) handledBefore(id, rev int64) bool {
	e, ok := b.entries[id]
	return ok && e.handled >= 0 && (e.handled == rev || e.handled == rev-1)
}

// fail notes an error of the handler and returns the pause before the next call.
func (b *handlerRetries) fail(id int64, err error, now time.Time, pass int) (attempts int, pause time.Duration) {
	e := b.entry(id)
	pause = b.base
	for range e.Attempts {
		if pause = 2 * pause; pause >= b.limit {
			pause = b.limit
			break
		}
	}
	e.Attempts++
	e.Err, e.pass, e.Next = err, pass, now.Add(pause)
	return e.Attempts, pause
}

// forget drops what the last complete pass did not meet any more.
func (b *handlerRetries) forget(pass int) {
	for id, e := range b.entries {
		if e.pass != pass {
			delete(b.entries, id)
		}
	}
}

// next is when the first task may be handled again; zero if none waits.
func (b *handlerRetries) next() time.Time {
	var first time.Time
	for _, e := range b.entries {
		if !e.Next.IsZero() && (first.IsZero() || e.Next.Before(first)) {
			first = e.Next
		}
	}
	return first
}
