// Package link is how a daemon lives through an outage of Redis: it says once
// that Redis is gone and once that it is back, and paces the attempts between.
package link

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
)

// The pauses between attempts while Redis does not answer: doubled from
// shortestBackoff to longestBackoff, half of each at random, so that many
// workers do not come back at the same moment.
const (
	shortestBackoff = 100 * time.Millisecond
	longestBackoff  = 2 * time.Second
)

// Link keeps track of whether Redis answers. It is safe for use by many
// goroutines, which then wait together.
type Link struct {
	say teller

	mu     sync.Mutex
	lost   time.Time // zero while Redis answers
	pauses timing.Backoff
}

// New returns a link to a Redis that answers.
func New(log zerolog.Logger) *Link { return newLink(zeroTeller{log}) }

func newLink(say teller) *Link {
	return &Link{say: say, pauses: timing.Backoff{First: shortestBackoff, Most: longestBackoff}}
}

// Failed notes a call without a good answer and returns the pause before the
// next: 100 ms doubled up to 2 s, half of it at random.
func (l *Link) Failed(err error) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.lost.IsZero():
		l.say.still(err, "redis still does not answer")
	case errors.Is(err, store.ErrUnreachable):
		l.say.lost(err, "lost the connection to redis, trying again")
	default:
		l.say.lost(err, "redis refuses a command, trying again")
	}
	if l.lost.IsZero() {
		l.lost = time.Now()
	}
	return l.pauses.Next()
}

// Answered notes that Redis works.
func (l *Link) Answered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.lost.IsZero() {
		l.say.back(time.Since(l.lost), "redis answers again")
	}
	l.lost = time.Time{}
	l.pauses.Reset()
}

// teller is the logger of a program, of whichever kind.
type teller interface {
	lost(err error, text string)
	still(err error, text string)
	back(away time.Duration, text string)
}

// NewSlog is New for the logger that package manager takes from its caller.
func NewSlog(log *slog.Logger) *Link { return newLink(slogTeller{log}) }

type zeroTeller struct{ log zerolog.Logger }

func (z zeroTeller) lost(err error, text string)  { z.log.Error().Err(err).Msg(text) }
func (z zeroTeller) still(err error, text string) { z.log.Debug().Err(err).Msg(text) }
func (z zeroTeller) back(away time.Duration, text string) {
	z.log.Info().Dur("away", away).Msg(text)
}

type slogTeller struct{ log *slog.Logger }

func (s slogTeller) lost(err error, text string)  { s.log.Error(text, "error", err) }
func (s slogTeller) still(err error, text string) { s.log.Debug(text, "error", err) }
func (s slogTeller) back(away time.Duration, text string) {
	s.log.Info(text, "away", away)
}
