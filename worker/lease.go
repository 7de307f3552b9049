package worker

import (
	"sync"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/store"
)

// lease is the worker's right to its rounds, on a clock that goes on while the
// host sleeps. It is over for the worker a margin before it is over for the
// server, so that nothing of a round is left when the server gives it away.
type lease struct {
	mu      sync.Mutex
	session store.Session
	until   shim.Instant
	held    bool
	timer   *time.Timer
	// over is called, in a goroutine of its own, when the lease ends.
	over func()
}

// margin is how much earlier the worker counts its lease as over: time enough
// to kill.
func margin(length time.Duration) time.Duration { return min(time.Second, length/10) }

// begin starts the lease of a new session, asked for at the moment sent.
func (l *lease) begin(session store.Session, sent shim.Instant) shim.Instant {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = session
	return l.extend(sent)
}

// renew prolongs the lease of the same session.
func (l *lease) renew(length time.Duration, sent shim.Instant) shim.Instant {
	l.mu.Lock()
	defer l.mu.Unlock()
	if length > 0 {
		l.session.Lease = timing.FromStd(length)
	}
	return l.extend(sent)
}

func (l *lease) extend(sent shim.Instant) shim.Instant {
	length := l.length()
	l.held = true
	l.until = sent + shim.Instant(length-margin(length))
	l.arm()
	return l.until
}

// arm sets the timer for the end of the lease. The timer's own clock stands
// still while the host sleeps, so it is looked at again when it fires.
func (l *lease) arm() {
	left := time.Duration(l.until - shim.Now())
	if l.timer == nil {
		l.timer = time.AfterFunc(left, l.fire)
		return
	}
	l.timer.Reset(left)
}

func (l *lease) fire() {
	l.mu.Lock()
	ended := l.held && shim.Now() >= l.until
	switch {
	case ended:
		l.held = false
	case l.held:
		l.arm()
	}
	l.mu.Unlock()
	if ended {
		l.over()
	}
}

// drop ends the lease at once: Redis has said that it is gone.
func (l *lease) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
}

// stop forgets the timer.
func (l *lease) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = false
	if l.timer != nil {
		l.timer.Stop()
	}
}

// now returns the session, until when it holds, and whether it does.
func (l *lease) now() (store.Session, shim.Instant, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session, l.until, l.held && shim.Now() < l.until
}

// interval is the time between two heartbeats: a third of the lease.
func (l *lease) interval() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.length() / 3
}

func (l *lease) length() time.Duration { return timing.ToStd(l.session.Lease) }
