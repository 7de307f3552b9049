package manager

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
)

// pass is one pass through what has ended.
type pass struct {
	m      *Manager
	number int
	// done are decisions to archive what was handled under that lease. They go along with the next call.
	done  []statemachine.Move
	lease *handling
	// archived is how many tasks it archived.
	archived int
}

// pass handles and archives what has ended, once through all outcomes. It
// returns the number of tasks it archived.
func (m *Manager) pass(ctx context.Context, h *Handlers, number int) (int, error) {
	p := &pass{m: m, number: number}
	err := p.outcomes(ctx, h)
	if last := p.finish(ctx); err == nil {
		err = last
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		m.mu.Lock()
		m.retries.forget(number)
		m.mu.Unlock()
	}
	return p.archived, err
}

// outcomes goes through the outcomes. Tasks that come meanwhile wait for the next pass, or they would starve
// other outcomes.
func (p *pass) outcomes(ctx context.Context, h *Handlers) error {
	var all []statePass
	var pages []tasks.Page
	for _, outcome := range statemachine.Outcomes() {
		of := statePass{pass: p, outcome: outcome, handler: h.of(outcome)}
		if of.handler == nil {
			continue
		}
		page := tasks.Page{State: outcome}
		if !of.unread() && p.m.picks == nil {
			page.Most = p.m.batchSize()
		}
		all, pages = append(all, of), append(pages, page)
	}
	heads, err := p.m.store.Heads(ctx, pages...)
	if err != nil {
		return err
	}
	for i := range all {
		if heads[i].Total == 0 {
			continue
		}
		p.m.log.Debug("processing", "tasks", heads[i].Total, "state", all[i].outcome)
		if err := all[i].all(ctx, heads[i]); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// take archives what was handled and asks for what comes next.
func (p *pass) take(ctx context.Context, t *tasks.TakeRequest) (tasks.TakeReply, error) {
	h, err := p.m.lease(ctx)
	if err != nil {
		return tasks.TakeReply{}, err
	}
	if h == p.lease { // else another manager may have what was handled, and the next pass finds out
		t.Archive = p.done
	}
	p.done, p.lease, t.Writer = nil, h, p.m.name
	if len(t.Archive) > 0 { // their handlers have been called, so it finishes also when ctx ends
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		ctx = last
	}
	taken, err := h.take(ctx, t)
	if errors.Is(err, ErrHandlingLost) {
		h.lose(err)
		return tasks.TakeReply{}, nil // the next call has another lease
	}
	p.archived += p.m.archived(ctx, taken.Archived)
	return taken, err
}

// stopped reports whether the manager was told to end, which is no error of a pass.
func stopped(ctx context.Context) bool { return ctx.Err() != nil }

// finish archives what was handled last, and lets others have what was granted and not archived.
func (p *pass) finish(ctx context.Context) error {
	h := p.m.handling
	if len(p.done) == 0 && (h == nil || h.lost() || h.idle() || stopped(ctx)) {
		return nil
	}
	_, err := p.take(ctx, &tasks.TakeRequest{})
	return err
}

// statePass is the part of a pass that is about one outcome.
type statePass struct {
	*pass

	outcome statemachine.State
	handler Handler
	// gone is how many tasks it has handled.
	gone int
}

// unread reports whether tasks are archived that nobody here wants to see.
func (p *statePass) unread() bool { return p.handler.archives() && p.m.picks == nil }

func (p *statePass) all(ctx context.Context, head tasks.Head) error {
	switch {
	case p.m.picks != nil:
		return p.selected(ctx, p.m.picks[p.outcome])
	case p.unread():
		return p.archiveUnread(ctx, head.Total)
	}
	return p.each(ctx, head.IDs, head.Total)
}

// each handles tasks, a few at a time: a call archives one batch, is granted the next one, and asks for the ids
// that come after the last of them, if the pass began with more. Tasks that stay are paged past.
func (p *statePass) each(ctx context.Context, ids []int64, total int) error {
	seen, size := len(ids), p.m.batchSize()
	for ids = p.due(ids); len(ids) > 0 || seen < total; {
		if stopped(ctx) {
			return nil
		}
		n, began := min(len(ids), p.m.batch.size()), time.Now()
		t := tasks.TakeRequest{Outcome: p.outcome, Ask: ids[:n]}
		if ids = ids[n:]; len(ids) == 0 && seen < total {
			t.Next = tasks.Page{State: p.outcome, First: seen - p.gone, Most: min(size, total-seen)}
		}
		taken, err := p.take(ctx, &t)
		if err != nil {
			return err
		}
		p.handle(ctx, taken.Granted)
		if n > 0 {
			p.m.batch.took(n, time.Since(began))
		}
		if t.Next.Most > 0 {
			ids = p.due(taken.Next)
			if seen += len(taken.Next); len(taken.Next) == 0 {
				total = seen
			}
		}
	}
	return nil
}

// archiveUnread archives tasks that nobody here wants to see. It needs no lease, and leaves alone what another manager
// handles. But then it has one, under which it watches that other, which may be dead.
func (p *statePass) archiveUnread(ctx context.Context, total int) error {
	for seen, stay := 0, 0; seen < total && ctx.Err() == nil; {
		page, err := p.m.store.Listed(ctx, p.outcome, stay, p.m.batchSize())
		if err != nil || len(page.Tasks) == 0 {
			return err
		}
		before := p.archived
		for batch := range slices.Chunk(p.ready(page.Tasks), mostAtOnce) {
			if err := p.archiveBatch(ctx, batch, page.Now); err != nil {
				return err
			}
		}
		seen += len(page.Tasks)
		stay += len(page.Tasks) - (p.archived - before)
	}
	return nil
}

func (p *statePass) archiveBatch(ctx context.Context, found []tasks.TaskHeader, now statemachine.Time) error {
	t := tasks.TakeRequest{Writer: p.m.name}
	for i := range found {
		t.Archive = p.decide(t.Archive, &found[i], now)
	}
	taken, err := p.m.store.Take(ctx, &t)
	if err != nil {
		return err
	}
	p.archived += p.m.archived(ctx, taken.Archived)
	if slices.ContainsFunc(taken.Archived, func(o tasks.Outcome) bool { return errors.Is(o.Err, conn.ErrHandled) }) {
		_, err = p.m.lease(ctx)
	}
	return err
}

// decide adds the decision to archive a task.
func (p *statePass) decide(moves []statemachine.Move, t *tasks.TaskHeader, now statemachine.Time) []statemachine.Move {
	move, err := statemachine.Decide(&t.Task, statemachine.Occurrence{Event: statemachine.Archive, Actor: statemachine.Manager}, now)
	if err != nil {
		p.m.log.Warn("task not archived", "task", t.ID, "error", err)
		return moves
	}
	return append(moves, move)
}

// ready leaves out what cannot be archived now.
func (p *statePass) ready(found []tasks.TaskHeader) []tasks.TaskHeader {
	return slices.DeleteFunc(found, func(t tasks.TaskHeader) bool { return !p.sound(&t) })
}

// sound reports whether a task is what its set says.
func (p *statePass) sound(t *tasks.TaskHeader) bool {
	switch {
	case t.Err != nil:
		p.m.log.Warn("damaged task passed over", "task", t.ID, "error", t.Err)
	case t.State != p.outcome: // or it has changed since it was listed; the next pass sees
		p.m.log.Debug("task passed over: its set and its record disagree", "task", t.ID,
			"listed", p.outcome, "state", t.State)
	default:
		return true
	}
	return false
}

// due leaves out tasks whose handler has returned an error just now.
func (p *statePass) due(ids []int64) []int64 {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	now := time.Now()
	return slices.DeleteFunc(slices.Clone(ids), func(id int64) bool { return p.m.retries.waits(id, now, p.number) })
}

// handle calls the handler for tasks that were granted, and decides to archive those that it has dealt with.
func (p *statePass) handle(ctx context.Context, granted []*tasks.TaskHeader) {
	within, end := p.lease.context(ctx)
	defer end()
	for _, t := range granted {
		if ctx.Err() != nil || p.lease.lost() {
			break
		}
		if p.sound(t) && p.call(within, p.lease, t) {
			p.done = p.decide(p.done, t, 0) // it depends on no time
			p.gone++
		}
	}
	if len(p.done) > 0 && p.lease.lost() {
		p.m.log.Warn("handled tasks are not archived: another manager may have them", "tasks", len(p.done))
		p.done = nil // the next pass finds out, and need not call the handler again
	}
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
		within, end := context.WithCancel(ctx)
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

// archived counts what became of decisions to archive.
func (m *Manager) archived(ctx context.Context, outcomes []tasks.Outcome) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, o := range outcomes {
		if o.Err != nil {
			level := slog.LevelInfo
			if errors.Is(o.Err, conn.ErrHandled) {
				level = slog.LevelDebug // another manager has it, and may have it for long
			}
			m.log.Log(ctx, level, "task not archived: it has changed", "task", o.ID, "error", o.Err)
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

// handledBefore reports whether the handler has dealt with this revision.
func (b *handlerRetries) handledBefore(id, rev int64) bool {
	e, ok := b.entries[id]
	return ok && e.handled == rev
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
