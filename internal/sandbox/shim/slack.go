package shim

import (
	"time"

	"golang.org/x/sys/unix"
)

// The Go runtime has a thread that looks around every 20 µs while others wait in
// the kernel, which is what a shim does: it cost more than all else a shim does in
// a round. Its timers may be late by the slack of their thread. A process inherits
// that of the thread that forks it, so it is the worker that sets it, and the
// main thread, from which programs are started, sets it back.
const (
	lazySlack   = 10 * time.Millisecond
	normalSlack = 50 * time.Microsecond // the kernel's
)

func setSlack(d time.Duration) {
	// It fails only for a kernel without slack.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d), 0, 0, 0)
}

// lazily runs f, which forks a shim, on this thread.
func lazily(f func() error) error {
	mine, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return f()
	}
	setSlack(lazySlack)
	defer setSlack(time.Duration(mine))
	return f()
}
