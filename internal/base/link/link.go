// Package link takes a daemon through an outage of Redis: it logs once that
// Redis is gone and once that it is back, and paces the attempts between.
package link

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/task"
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
	log *slog.Logger

	mu     sync.Mutex
	lost   time.Time // zero while Redis answers
	pauses timing.Backoff
}

// New returns a link to a Redis that answers.
func New(log *slog.Logger) *Link {
	return &Link{log: log, pauses: timing.Backoff{First: shortestBackoff, Most: longestBackoff}}
}

// Failed notes a call without a good answer and returns the pause before the
// next: 100 ms doubled up to 2 s, half of it at random.
func (l *Link) Failed(err error) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.lost.IsZero():
		l.log.Debug("redis still does not answer", "error", err)
	case errors.Is(err, task.ErrUnreachable):
		l.log.Error("lost the connection to redis, trying again", "error", err)
	default:
		l.log.Error("redis refuses a command, trying again", "error", err)
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
	if l.lost.IsZero() {
		return
	}
	l.log.Info("redis answers again", "away", time.Since(l.lost))
	l.lost = time.Time{}
	l.pauses.Reset()
}
