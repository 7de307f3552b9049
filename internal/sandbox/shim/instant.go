package shim

import (
	"time"

	"golang.org/x/sys/unix"
)

// Instant is a moment on CLOCK_BOOTTIME, which goes on while the host sleeps.
type Instant time.Duration

// Now reads that clock.
func Now() Instant {
	var now unix.Timespec
	// It cannot fail: the clock is as old as Linux 2.6.39.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now)
	return Instant(now.Nano())
}

// Add returns the moment d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }
