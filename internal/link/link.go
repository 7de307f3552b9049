// Package link is how a daemon lives through an outage of Redis: it says once
// that Redis is gone and once that it is back, and paces the attempts between.
package link

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"

	"github.com/tdf-go/tdf/internal/store"
)

// The pauses between attempts while Redis does not answer: doubled from
// shortestBackoff to longestBackoff, half of each at random, so that many
// workers do not come back at the same moment.
const (
	shortestBackoff = 100 * time.Millisecond
	longestBackoff  = 2 * time.Second
)

// Link keeps track of whether Redis answers. It belongs to one goroutine.
type Link struct {
	log   zerolog.Logger
	lost  time.Time // zero while Redis answers
	tries int
}

// New returns a link to a Redis that answers.
func New(log zerolog.Logger) *Link { return &Link{log: log} }

// Failed notes a call without a good answer and returns the pause before the
// next: 100 ms doubled up to 2 s, half of it at random.
func (l *Link) Failed(err error) time.Duration {
	switch {
	case !l.lost.IsZero():
		l.log.Debug().Err(err).Msg("redis still does not answer")
	case errors.Is(err, store.ErrUnreachable):
		l.log.Error().Err(err).Msg("lost the connection to redis, trying again")
	default:
		l.log.Error().Err(err).Msg("redis refuses a command, trying again")
	}
	if l.lost.IsZero() {
		l.lost = time.Now()
	}
	d := min(shortestBackoff<<min(l.tries, 10), longestBackoff)
	l.tries++
	return d/2 + rand.N(d/2)
}

// Answered notes that Redis works.
func (l *Link) Answered() {
	if !l.lost.IsZero() {
		l.log.Info().Dur("away", time.Since(l.lost)).Msg("redis answers again")
	}
	l.lost, l.tries = time.Time{}, 0
}
