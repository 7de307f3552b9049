package top

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
)

// answer is what the source said; err is nil, or there is no snapshot.
type answer struct {
	snapshot Snapshot
	err      error
	at       time.Time // by our clock
}

// rested says that the interval of a turn is over.
type rested struct{ turn int }

// feed asks the source and tells the time. The program does not wait for the
// commands it started; the feed does, when it is closed.
type feed struct {
	ask  func() (Snapshot, error)
	wait func(time.Duration) bool
	now  func() time.Time
	stop context.CancelFunc

	mu     sync.RWMutex // held for reading while a command runs
	closed bool
}

// newFeed makes a feed that must be closed. Its commands end with ctx.
func newFeed(ctx context.Context, o Options) *feed {
	ctx, stop := context.WithCancel(ctx)
	return &feed{
		ask: func() (Snapshot, error) {
			ctx, done := context.WithTimeout(ctx, o.Timeout)
			defer done()
			s, err := o.Source(ctx)
			if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				err = fmt.Errorf("no answer within %v: %w", o.Timeout, err)
			}
			return s, err
		},
		wait: func(d time.Duration) bool { return timing.Pause(ctx, d) },
		now:  o.Now,
		stop: stop,
	}
}

// close ends what is under way and waits for it.
func (f *feed) close() {
	f.stop()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// read asks the source once.
func (f *feed) read() answer {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return answer{err: context.Canceled, at: f.now()}
	}
	s, err := f.ask()
	at := f.now()
	if s.At.IsZero() {
		s.At = at
	}
	return answer{snapshot: s, err: err, at: at}
}

// rest waits for the interval of a turn.
func (f *feed) rest(d time.Duration, turn int) rested {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if !f.closed {
		f.wait(d)
	}
	return rested{turn}
}
