package worker

import (
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/tdf-go/tdf/internal/base/link"
	"github.com/tdf-go/tdf/internal/store"
)

// lane is one kind of command on the way to Redis. All lanes lose Redis together
// and say so once; what Redis refuses, each has for itself, so that the success
// of one neither hides nor hastens the repeated failure of another.
type lane struct{ all, own *link.Link }

func newLane(all *link.Link, log zerolog.Logger) lane { return lane{all, link.New(log)} }

func (l lane) answered() {
	l.all.Answered()
	l.own.Answered()
}

// failed returns the pause before the next attempt.
func (l lane) failed(err error) time.Duration {
	if errors.Is(err, store.ErrUnreachable) {
		return l.all.Failed(err)
	}
	return l.own.Failed(err)
}
