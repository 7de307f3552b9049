package worker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/task"
)

// slot does one task at a time. Its shim is started with its first program and
// stays for the next ones.
type slot struct {
	worker *Worker
	index  int
	held   held // of the goroutine at work

	mu     sync.Mutex
	shim   *shim.Slot
	told   shim.Instant // the deadline that the shim knows
	round  *round
	cancel context.CancelCauseFunc
	hard   atomic.Bool // the round must stop without grace
}

// hostPause is how long a slot rests when its host has nothing to run the task with.
const hostPause = 5 * time.Second

// assignment is a task that a slot is to work on, and the claim that brought it.
type assignment struct {
	claimed     *Claimed
	clock       redisClock
	incarnation int64
}

func newAssignment(c *Claimed, clock redisClock, incarnation int64) *assignment {
	return &assignment{claimed: c, clock: clock, incarnation: incarnation}
}

// slotsOf is how many slots a task takes.
func slotsOf(c *Claimed) int { return max(1, c.Resources[task.CPUs].Count) }

// work does rounds as long as each report brings the next task, and makes the slot free again.
func (s *slot) work(a *assignment) {
	for a != nil {
		a = s.one(a)
	}
}

// one does one round from claim to report. Without another task the slot is free, or stuck.
func (s *slot) one(a *assignment) (next *assignment) {
	w := s.worker
	ctx, cancel := context.WithCancelCause(w.executing)
	defer cancel(nil)
	r := w.newRound(ctx, a.claimed, a.clock, s)
	s.begin(r, cancel, a.incarnation)
	begun := time.Now()
	r.waited = r.waitedFor()
	end := r.execute(ctx)
	r.ran = time.Since(begun)
	w.pace.add(r.ran)
	w.flush()
	s.end()
	if next = s.goOn(r, &end); next != nil {
		return next
	}
	w.pool.set(s, reporting)
	success, next := r.report(w.reports, &end)
	if next == nil || end.stuck != nil { // else the lines of the next round go along
		w.flush()
	}
	if end.stuck != nil {
		w.stick(s, r, end.stuck)
		return nil
	}
	r.removePrivate()
	if next != nil {
		return next
	}
	s.held.looked = false
	w.pool.set(s, resting)
	s.restAfter(r, &end)
	timing.Pause(w.rounds, w.opts.pauseAfter(success))
	return w.pool.rest(s, w.pool.supply() > 0 && w.mayBegin())
}

// pauseAfter is how long a slot rests after a round.
func (o *Options) pauseAfter(success bool) time.Duration {
	if success {
		return o.SleepAfterSuccess
	}
	return o.SleepAfterFailure
}

// restAfter keeps a slot from asking for the same task again at once.
func (s *slot) restAfter(r *round, end *ending) {
	w := s.worker
	host, unable := errors.AsType[*hostError](end.why)
	switch {
	case unable:
		rest := w.shortage.begin(host.err)
		w.endWait()
		r.log.Error("this host cannot run programs now; the worker rests", "error", host.err, "slot", s.index, "rest", rest.String())
	case end.unfit():
		r.log.Warn("leaving the task to other workers; the slot rests", "error", end.why)
		timing.Pause(w.rounds, hostPause)
	case end.result.Started:
		w.shortage.over()
	}
}

// blocks reports whether the slot cannot go on at once.
func (e *ending) blocks() bool { return e.stuck != nil || e.unfit() }

// unfit reports whether the slot's host was not up to the task, so that it should not ask at once for another one.
func (e *ending) unfit() bool {
	return declined(e.why) != ""
}

// begin notes the round under way. If the session that claimed it is over
// already, it ends at once: it may be another's by now.
func (s *slot) begin(r *round, cancel context.CancelCauseFunc, incarnation int64) {
	s.mu.Lock()
	s.round, s.cancel = r, cancel
	s.hard.Store(false)
	s.mu.Unlock()
	// Cancelled before the answer to its claim was here, or in an earlier round,
	// after which another client has opened the task again.
	if r.Task.StopAsked || s.worker.cancelled(r) {
		s.stopRound(r, ErrCancelled)
	}
	if session, held := s.worker.lease.now(); !held || session.Incarnation != incarnation {
		s.hard.Store(true)
		cancel(errLeaseOver)
	}
}

func (s *slot) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.round, s.cancel = nil, nil
}

// current is the round under way, nil for none.
func (s *slot) current() *round {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.round
}

// stop ends the round under way: TERM, grace, KILL; at once if hard.
func (s *slot) stop(cause error, hard bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel == nil {
		return
	}
	if hard {
		s.hard.Store(true)
	}
	s.cancel(cause)
	if hard && s.shim != nil {
		s.shim.Kill()
	}
}

// extend tells the shim until when its round may run by itself.
func (s *slot) extend(until shim.Instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shim != nil {
		s.told = until
		_ = s.shim.Extend(until) // a shim that is gone has nothing running
	}
}

// run runs a program in the slot's shim. A shim that died while it was idle is
// replaced: nothing of the program has run.
func (s *slot) run(ctx context.Context, p shim.Program) (shim.Result, error) {
	for again := true; ; again = false {
		result := shim.Result{ExitCode: -1}
		sh, err := s.ready()
		if err == nil {
			result, err = sh.Run(ctx, p)
		}
		if !errors.Is(err, shim.ErrShimLost) {
			return result, err
		}
		s.worker.log.Warn("the shim of the slot is lost, and its round with it; starting another", "error", err, "slot", s.index)
		if err := s.discard(); err != nil {
			s.worker.log.Warn("could not end the shim that was lost", "error", err, "slot", s.index)
			again = false
		}
		if !again || result.Started || ctx.Err() != nil {
			return result, err
		}
	}
}

// ready returns a shim that knows until when the lease holds. To tell it costs a
// wake-up, so it is told only what it does not know. Only the slot's own
// goroutine starts and closes shims: that takes time, in which the lock, which
// the heartbeat needs, is free.
func (s *slot) ready() (*shim.Slot, error) {
	if sh := s.known(); sh != nil {
		return sh, s.tell(sh)
	}
	sh, err := s.worker.opts.container.Start(s.index)
	if err != nil {
		return nil, &hostError{err}
	}
	s.mu.Lock()
	s.shim, s.told = sh, 0
	s.mu.Unlock()
	return sh, s.tell(sh)
}

func (s *slot) known() *shim.Slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shim
}

// tell tells the shim the end of the lease if it does not know it.
func (s *slot) tell(sh *shim.Slot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := s.worker.lease.end()
	if until == s.told {
		return nil
	}
	s.told = until
	return sh.Extend(until)
}

// discard closes the shim; the next program gets another.
func (s *slot) discard() error {
	sh := s.known()
	if sh == nil {
		return nil
	}
	if err := sh.Close(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shim = nil
	return nil
}

// unstickInterval is how often it is tried to get a stuck slot back.
const unstickInterval = 5 * time.Second

// stick takes a slot out of service whose round does not end, visibly, and
// brings it back when that has ended after all. The round keeps its private
// directory until then: what still runs could write to it and mount there.
func (w *Worker) stick(s *slot, r *round, ended func(ctx context.Context) bool) {
	w.log.Error("the slot is stuck: what ran in it does not end; it takes no task until it does", "slot", s.index)
	w.pool.set(s, stuck)
	w.rulesChanged() // what takes more slots than are left is for others
	w.signalChange()
	w.background.Go(func() {
		for !ended(w.life) {
			if w.life.Err() != nil {
				return
			}
		}
		r.removePrivate()
		w.log.Warn("the slot is free again", "slot", s.index)
		w.pool.set(s, idle)
		w.rulesChanged()
		w.signalChange()
	})
}

// unkillable waits for a program that survives KILL, usually because it hangs
// in the kernel.
func (s *slot) unkillable(ctx context.Context) bool {
	timing.Pause(ctx, unstickInterval)
	return s.discard() == nil
}
