package manager

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/base/link"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Run gives the tasks that have ended, and that [Handlers.Only] means, to their handlers
// and archives them, pass by pass, until Stop says so or ctx ends; then it returns nil. It
// reacts at once when tasks end, and looks at the latest after [manager] round_duration.
// What it has no handler for stays as it is.
//
// A pass handles what has ended: first succeeded tasks, then failed, timed_out
// and expired ones, then the others; then AfterPass and Stop are called. Passes
// without any task come only every round_duration. While Redis is away Run
// waits and goes on.
//
// Several managers may run on one namespace and share the work: a task is never
// with the handlers of two of them at once, and is archived once; see [Handler].
// If one dies, the others get what it was handling when its lease is over. Where
// ctx ends, Run waits for the handler that is being called, archives what was
// handled, and gives back the rest. AfterPass and Stop belong to each manager by
// itself: they may be called in several at once.
//
// The error matches [ErrRunning] if Run is under way already, [ErrNoHandler] if h handles
// nothing, and [ErrManagerAlive] for a standby manager beside a project's own manager.
func (m *Manager) Run(ctx context.Context, h Handlers) error {
	if m.unusable != nil {
		return m.unusable
	}
	if err := h.check(); err != nil {
		return err
	}
	if !m.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer m.running.Store(false)
	if ctx.Err() != nil {
		return nil
	}
	within, end := context.WithCancelCause(ctx)
	gone, err := m.appear(within, end)
	if err != nil {
		end(nil)
		return err
	}
	changes, stop := m.store.Watch(within)
	m.picks = h.picks()
	m.passes(within, &h, changes)
	cause := context.Cause(within)
	if m.handling != nil {
		m.handling.end(within)
		m.handling = nil
	}
	end(nil)
	stop()
	gone()
	if errors.Is(cause, ErrManagerAlive) {
		return cause
	}
	return nil
}

// A pass lets a few more tasks end after the first one that it is told of: the longer, the longer passes take.
const (
	linger      = 3 * time.Millisecond
	mostLinger  = 10 * time.Millisecond
	lingerTimes = 3
)

// passes makes passes until one says stop. A pass for which there was a hint,
// but no task, does not count: the hint may have been about our own archiving.
func (m *Manager) passes(ctx context.Context, h *Handlers, changes <-chan struct{}) {
	redis, hinted := link.New(m.log), false
	end := m.after(m.opt.RoundDuration)
	for n := 0; ctx.Err() == nil; n++ {
		began := time.Now()
		processed, err := m.pass(ctx, h, n)
		if err != nil {
			if ctx.Err() == nil {
				m.wait(ctx, redis.Failed(err))
			}
			continue
		}
		redis.Answered()
		if processed > 0 || !hinted {
			if m.endPass(ctx, h, processed) {
				return
			}
			end = m.after(m.opt.RoundDuration)
		}
		hinted = m.idle(ctx, changes, end, min(max(linger, lingerTimes*time.Since(began)), mostLinger))
	}
}

// endPass calls AfterPass and Stop; it reports whether Run shall end.
func (m *Manager) endPass(ctx context.Context, h *Handlers, processed int) bool {
	if ctx.Err() != nil && processed == 0 {
		return true
	}
	m.mu.Lock()
	n := m.stats.Passes
	m.stats.Passes++
	m.mu.Unlock()
	m.log.Info("processed", "pass", n, "tasks", processed)
	if ctx.Err() != nil {
		return true
	}
	if h.AfterPass != nil {
		if err := h.AfterPass(ctx, n); err != nil {
			m.log.Error("AfterPass returned an error; Stop is not asked in this pass", "pass", n, "error", err)
			return false
		}
	}
	return h.Stop != nil && h.Stop(ctx, n)
}

// idle waits for a reason for another pass, and after a hint a little more. It reports whether that was a hint,
// rather than the end of the pass.
func (m *Manager) idle(ctx context.Context, changes <-chan struct{}, end <-chan time.Time, more time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-end:
		return false
	case <-m.retryTimer():
		return true
	case <-changes:
		m.wait(ctx, more)
		return true
	}
}

// retryTimer fires when a handler may be called again; nil if none waits.
func (m *Manager) retryTimer() <-chan time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.retries.next()
	if next.IsZero() {
		return nil
	}
	return m.after(max(0, time.Until(next)))
}

// Handler deals with a task that has ended. What is promised:
//
//   - It is called at least once before the task is archived; again if it
//     returned an error, or if the manager ended or was cut off in between.
//     [task.Task.IdempotencyKey] is the same in each of these calls: with it, effects
//     outside TDF can be made to happen once.
//   - It is never called by two managers at once. Each task is handled under a
//     lease, [manager] handling_lease. If that cannot be renewed in time, ctx ends
//     with the cause [ErrHandlingLost], and the handler must return: another
//     manager is called for the task a little later. A handler that ignores
//     this, or whose process was frozen until then, may overlap with that call.
//   - The task is archived once, after it returned nil, and never while another
//     manager has been given the task.
//
// An error leaves the task for a later round, of this manager after [manager]
// handler_backoff, which doubles with each error up to handler_backoff_max, of
// another one at any time; see [Manager.Stats]. Other tasks do not wait for it.
type Handler func(ctx context.Context, t *task.Task) error

// Archive is the handler that does nothing, so that the task is archived:
//
//	manager.Handlers{Succeeded: use, Unhandled: manager.Archive}
func Archive(context.Context, *task.Task) error { return nil }

// archives reports whether the handler is Archive. Such tasks need not be read, and no lease.
func (h Handler) archives() bool {
	return reflect.ValueOf(h).Pointer() == reflect.ValueOf(Archive).Pointer()
}

// Handlers is what Run calls. A task that ended in a state without a handler, and without
// [Handlers.Unhandled], stays as it is.
type Handlers struct {
	// Only selects the tasks to handle, by their ids, queue, program, plan, labels, attributes, how
	// they ended, or Match; the zero Selection selects all. Others, such as those of other
	// programs in the namespace, stay as they are. Archived, Fields, Newest and Limit are
	// refused. A task that a repair has put into its state may be handled up to a minute
	// late.
	Only Selection

	// In each pass tasks are handled in this order of states.
	Succeeded, Failed, TimedOut, Expired Handler
	Cancelled, Terminated, Orphaned      Handler
	// Unhandled is called for tasks that ended in a state without a handler of
	// its own; see [Archive].
	Unhandled Handler

	// AfterPass is called at the end of each pass; pass counts from 0. After an
	// error, which is logged, Stop is not asked in this pass.
	AfterPass func(ctx context.Context, pass int) error
	// Stop is asked after AfterPass whether Run shall end.
	Stop func(ctx context.Context, pass int) bool
}

func (h *Handlers) of(outcome statemachine.State) Handler {
	own := map[statemachine.State]Handler{
		statemachine.Succeeded: h.Succeeded, statemachine.Failed: h.Failed,
		statemachine.TimedOut: h.TimedOut, statemachine.Expired: h.Expired,
		statemachine.Cancelled: h.Cancelled, statemachine.Terminated: h.Terminated,
		statemachine.Orphaned: h.Orphaned,
	}[outcome]
	if own == nil {
		return h.Unhandled
	}
	return own
}

// presenceInterval is how often a running manager says that it is alive.
const presenceInterval = 4 * time.Second

// shutdownTimeout bounds what is done after Run was told to end.
const shutdownTimeout = 3 * time.Second

// appear says that this manager is alive, now and until ctx ends; then it takes
// that back. end gets the cause if the manager must not run any longer. The
// result waits for the end of that.
func (m *Manager) appear(ctx context.Context, end context.CancelCauseFunc) (gone func(), err error) {
	p := fleet.ManagerRecord{Instance: conn.NewToken(), Name: m.name, Standby: m.opt.Standby, Force: m.opt.Force}
	if err := m.store.RegisterManager(ctx, p); err != nil && !errors.Is(err, task.ErrUnreachable) {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.stayPresent(ctx, p, end)
	}()
	return func() { <-done }, nil
}

func (m *Manager) stayPresent(ctx context.Context, p fleet.ManagerRecord, end context.CancelCauseFunc) {
	tick := time.NewTicker(presenceInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
			defer cancel()
			if err := m.store.DeregisterManager(last, p); err != nil {
				m.log.Debug("presence not taken back", "error", err)
			}
			return
		case <-tick.C:
			if err := m.store.RegisterManager(ctx, p); errors.Is(err, ErrManagerAlive) {
				end(err)
			} else if err != nil {
				m.log.Debug("presence not renewed", "error", err)
			}
		}
	}
}

// Stats says what Run has done since the Manager was made.
type Stats struct {
	// Passes is the number of passes, Archived the number of tasks archived.
	Passes, Archived int
	// HandlerErrors is how often a handler returned an error.
	HandlerErrors int
	// Retrying are the tasks that wait for another call of their handler.
	Retrying []RetryingTask
}

// RetryingTask is a task whose handler returned an error.
type RetryingTask struct {
	ID int64
	// Attempts is how often the handler was called for it.
	Attempts int
	// Next is when it may be called again.
	Next time.Time
	// Err is what it returned last.
	Err error
}

// Stats may be called at any time, also while Run is under way.
func (m *Manager) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats
	for _, e := range m.retries.entries {
		if e.Attempts > 0 && e.handled < 0 {
			s.Retrying = append(s.Retrying, e.RetryingTask)
		}
	}
	slices.SortFunc(s.Retrying, func(a, b RetryingTask) int { return cmp.Compare(a.ID, b.ID) })
	return s
}
