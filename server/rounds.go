package server

import (
	"context"
	"time"

	"github.com/tdf-go/tdf/internal/base/link"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
)

// rounds makes passes: when woken, when the next deadline comes, and at the end
// of each round. A round lasts round_duration and ends with a log line that
// says how many tasks were settled in it.
func (s *Server) rounds(ctx context.Context, wake chan struct{}) {
	redis := link.New(s.log)
	for n := 0; ctx.Err() == nil; n++ {
		processed, end := 0, s.opt.after(s.opt.RoundDuration)
		for over := false; !over && ctx.Err() == nil; {
			began := time.Now()
			moved, next, err := s.pass(ctx)
			processed += moved
			rest := restAfter(moved, time.Since(began))
			if err != nil && ctx.Err() == nil {
				s.steady.failed()
			}
			if s.history.watch(ctx, err) {
				err, next = nil, 0 // Redis answers; the pass is made again
			}
			note(ctx, redis, err)
			over = !timing.Pause(ctx, rest) || s.sleep(ctx, wake, end, next)
		}
		if ctx.Err() == nil {
			s.log.Info().Int("round", n).Int("tasks", processed).Msg("processed")
		}
	}
}

// While there is much to do, a pass costs nearly the same for one task as for twenty. So passes that move something
// take a quarter of the time, for the Redis that all share, and the next one finds more to move. The first
// one comes at once.
const (
	restTimes = 3
	mostRest  = 10 * time.Millisecond
)

// restAfter is how long to rest after a pass.
func restAfter(moved int, took time.Duration) time.Duration {
	if moved == 0 {
		return 0
	}
	return min(restTimes*took, mostRest)
}

// sleep returns when there is a reason for another pass; it reports whether
// the round is over.
func (s *Server) sleep(ctx context.Context, wake chan struct{}, end <-chan time.Time, next time.Duration) bool {
	var deadline <-chan time.Time
	if next >= 0 && next < s.opt.RoundDuration {
		t := time.NewTimer(next)
		defer t.Stop()
		deadline = t.C
	}
	select {
	case <-ctx.Done():
		return true
	case <-end:
		return true
	case <-wake:
		return false
	case <-deadline:
		return false
	}
}

// pass settles everything that is due, and judges the nodes that fail. It returns how many tasks it moved and
// how long it is until there is something to look at again: a deadline, the end
// of a lease.
func (s *Server) pass(ctx context.Context) (moved int, next time.Duration, err error) {
	moved, err = s.settleExecuted(ctx)
	if err != nil {
		return moved, -1, err
	}
	n, at, now, err := s.settleDue(ctx)
	moved += n
	if err != nil {
		return moved, -1, err
	}
	n, more, err := s.drain(ctx)
	moved += n
	if err != nil {
		return moved, -1, err
	}
	again, err := s.nodes.judgeAll(ctx, now)
	if err != nil {
		return moved, -1, err
	}
	n, next, err = s.takeBack(ctx)
	moved += n
	if err != nil {
		return moved, -1, err
	}
	next = sooner(next, again)
	if at != statemachine.Never {
		next = sooner(next, max(0, timing.ToStd(at.Sub(now))))
	}
	if more {
		next = 0
	}
	// Silence of Redis must be noticed well within a lease.
	return moved, sooner(next, s.opt.WorkerTimeout/6), nil
}

// sooner is the shorter of two waits; a negative one is for nothing.
func sooner(a, b time.Duration) time.Duration {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}
