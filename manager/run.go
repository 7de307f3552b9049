package manager

import (
	"context"
	"errors"
	"time"

	"github.com/tdf-go/tdf/internal/base/link"
)

// Run gives every task that has ended to its handler and archives it, round by
// round, until Stop says so or ctx ends; then it returns nil. It reacts at once
// when tasks end, and looks at the latest after [manager] round_duration.
//
// A round handles what has ended: first succeeded tasks, then failed, timed_out
// and expired ones, then the others; then EndRound and Stop are called. Rounds
// without any task come only every round_duration. While Redis is away Run
// waits and goes on.
//
// Several managers may run on one namespace and share the work: a task is never
// with the handlers of two of them at once, and is archived once; see [Handler].
// If one dies, the others get what it was handling when its lease is over. Where
// ctx ends, Run waits for the handler that is being called, archives what was
// handled, and gives back the rest. EndRound and Stop belong to each manager by
// itself: they may be called in several at once.
//
// The error matches [ErrRunning] if Run is under way already, and
// [ErrManagerAlive] for a stand-in beside a project's own manager.
func (m *Manager) Run(ctx context.Context, h Handlers) error {
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
	m.rounds(within, &h, changes)
	cause := context.Cause(within)
	m.endLease(within)
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

// rounds makes passes until one says stop. A pass for which there was a hint,
// but no task, is no round: the hint may have been about our own archiving.
func (m *Manager) rounds(ctx context.Context, h *Handlers, changes <-chan struct{}) {
	redis, hinted := link.NewSlog(m.log), false
	end := m.after(m.cfg.Manager.RoundDuration)
	for n := 0; ctx.Err() == nil; n++ {
		began := time.Now()
		processed, err := m.pass(ctx, h, n)
		if err != nil {
			m.pause(ctx, redis, err)
			continue
		}
		redis.Answered()
		if processed > 0 || !hinted {
			if m.endRound(ctx, h, processed) {
				return
			}
			end = m.after(m.cfg.Manager.RoundDuration)
		}
		hinted = m.idle(ctx, changes, end, min(max(linger, lingerTimes*time.Since(began)), mostLinger))
	}
}

// pause waits while Redis is away, longer each time.
func (m *Manager) pause(ctx context.Context, redis *link.Link, err error) {
	if ctx.Err() == nil {
		m.wait(ctx, redis.Failed(err))
	}
}

// endRound calls EndRound and Stop; it reports whether Run shall end.
func (m *Manager) endRound(ctx context.Context, h *Handlers, processed int) bool {
	if ctx.Err() != nil && processed == 0 {
		return true
	}
	m.mu.Lock()
	n := m.stats.Rounds
	m.stats.Rounds++
	m.mu.Unlock()
	m.log.Info("processed", "round", n, "tasks", processed)
	if ctx.Err() != nil {
		return true
	}
	if h.EndRound != nil {
		if err := h.EndRound(ctx, m, n); err != nil {
			m.log.Error("EndRound returned an error; Stop is not asked in this round", "round", n, "error", err)
			return false
		}
	}
	return h.Stop != nil && h.Stop(ctx, m, n)
}

// idle waits for a reason for another pass, and after a hint a little more. It reports whether that was a hint,
// rather than the end of the round.
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
	next := m.book.next()
	if next.IsZero() {
		return nil
	}
	return m.after(max(0, time.Until(next)))
}
