package server

import (
	"context"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
)

// leastStep is the least that counts as a step of a clock.
const leastStep = time.Second

// steps notices that the clock of Redis steps. Nothing depends on it: a step is named for
// people, who may wonder at what follows from it.
type steps struct {
	// sent and received are when TIME was asked for last, and when it was known.
	sent, received time.Time
	redis          statemachine.Time
}

// look returns how far the clock has stepped since the last look, 0 for not, and less
// than leastStep for not at all.
func (s *steps) look(sent, received time.Time, redis statemachine.Time) time.Duration {
	was := *s
	*s = steps{sent, received, redis}
	if was.received.IsZero() {
		return 0
	}
	passed := timing.ToStd(redis.Sub(was.redis))
	by := min(0, passed-sent.Sub(was.received)) + max(0, passed-received.Sub(was.sent))
	if by.Abs() < leastStep {
		return 0
	}
	return by.Round(100 * time.Millisecond) // it is not known better
}

// noteStep names a step, and keeps it for why and doctor.
func (s *Server) noteStep(ctx context.Context, by time.Duration, at statemachine.Time) {
	switch {
	case by == 0:
		return
	case by < 0:
		s.log.Warn().Dur("by", by).Msgf("the clock of Redis has stepped back by %v: order and lengths of time go on as if it had not, "+
			"start_after and end_before go by it", -by)
	default:
		s.log.Warn().Dur("by", by).Msgf("the clock of Redis has stepped forward by %v: what waits or rests has seemingly done so for longer", by)
	}
	if err := s.store.NoteStep(ctx, at, by); err != nil {
		s.log.Debug().Err(err).Msg("could not keep the step of the clock")
	}
}
