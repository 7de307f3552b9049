package worker

import (
	"context"
	"errors"
	"sync"

	"github.com/tdf-go/tdf/internal/shim"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/timing"
	"github.com/tdf-go/tdf/internal/workdir"
)

// slot does one task at a time. Its shim is started with its first program and
// stays for the next ones.
type slot struct {
	worker *Worker
	index  int
	spare  workdir.Spare // of the goroutine at work

	mu     sync.Mutex
	shim   *shim.Slot
	told   shim.Instant // the deadline that the shim knows
	round  *round
	cancel context.CancelCauseFunc
}

// work does one round from claim to report and makes the slot free again.
func (s *slot) work(task *store.Claimed, clock redisClock, incarnation int64) {
	w := s.worker
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	r := w.newRound(task, clock, s)
	s.begin(r, cancel, incarnation)
	end := r.execute(ctx)
	s.end()
	w.pool.set(s, reporting)
	success := r.report(w.reports, &end)
	r.removePrivate()
	if end.stuck != nil {
		w.stick(s, end.stuck)
		return
	}
	if success {
		timing.Pause(w.rounds, w.opts.SleepAfterSuccess)
	} else {
		timing.Pause(w.rounds, w.opts.SleepAfterFailure)
	}
	w.pool.set(s, idle)
}

// begin notes the round under way. If the session that claimed it is over
// already, it ends at once: it may be another's by now.
func (s *slot) begin(r *round, cancel context.CancelCauseFunc, incarnation int64) {
	s.mu.Lock()
	s.round, s.cancel = r, cancel
	s.mu.Unlock()
	if session, _, held := s.worker.lease.now(); !held || session.Incarnation != incarnation {
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

// run runs a program in the slot's shim, which it starts where there is none.
func (s *slot) run(ctx context.Context, p shim.Program) (shim.Result, error) {
	result := shim.Result{ExitCode: -1}
	sh, err := s.ready()
	if err == nil {
		result, err = sh.Run(ctx, p)
	}
	if errors.Is(err, shim.ErrShimLost) {
		if err := s.discard(); err != nil {
			s.worker.log.Warn().Err(err).Int("slot", s.index).Msg("could not end the shim that was lost")
		}
	}
	return result, err
}

// ready returns a shim that knows until when the lease holds. To tell it costs a
// wake-up, so it is told only what it does not know.
func (s *slot) ready() (*shim.Slot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := s.shim == nil
	if fresh {
		sh, err := s.worker.opts.Container.Start(s.index)
		if err != nil {
			return nil, err
		}
		s.shim = sh
	}
	_, until, _ := s.worker.lease.now()
	if !fresh && until == s.told {
		return s.shim, nil
	}
	s.told = until
	return s.shim, s.shim.Extend(until)
}

// discard closes the shim; the next program gets another.
func (s *slot) discard() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shim == nil {
		return nil
	}
	err := s.shim.Close()
	if err == nil {
		s.shim = nil
	}
	return err
}
