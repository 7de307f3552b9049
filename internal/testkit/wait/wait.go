// Package wait lets tests wait for something to become true, bounded in time,
// instead of sleeping for a guessed while.
//
// Prefer a channel or a signal of the code under test ([Receive], [Closed]);
// [Eventually] polls, for what can only be looked at from outside. Timeouts and
// the bounds of [Within] do not count the time in which the machine is busy.
//
// The package is imported from _test.go files and test helpers only.
package wait

import (
	"fmt"
	"testing"
	"time"
)

const pollEvery = 5 * time.Millisecond

// Eventually calls condition every 5 ms until it is true. After timeout it ends
// the test with the message, which is a format like that of [fmt.Sprintf]. It is
// called from the test's own goroutine, and condition runs there too.
func Eventually(tb testing.TB, timeout time.Duration, condition func() bool, format string, args ...any) {
	tb.Helper()
	limit := newDeadline(timeout)
	defer limit.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
			loads.note()
		case <-limit.C:
			if limit.over() {
				tb.Fatalf("not within %v: %s", timeout, fmt.Sprintf(format, args...))
			}
		}
	}
}

// Never calls condition every 5 ms for the whole of period and ends the test
// with the message if it is ever true.
func Never(tb testing.TB, period time.Duration, condition func() bool, format string, args ...any) {
	tb.Helper()
	end := time.NewTimer(period)
	defer end.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if condition() {
			tb.Fatalf("happened within %v: %s", period, fmt.Sprintf(format, args...))
		}
		select {
		case <-tick.C:
		case <-end.C:
			return
		}
	}
}

// Receive returns the next value of ch. After timeout, or if ch is closed, it
// ends the test with the message.
func Receive[T any](tb testing.TB, timeout time.Duration, ch <-chan T, format string, args ...any) T {
	tb.Helper()
	limit := newDeadline(timeout)
	defer limit.Stop()
	for {
		select {
		case v, ok := <-ch:
			if !ok {
				tb.Fatalf("channel closed without a value: %s", fmt.Sprintf(format, args...))
			}
			return v
		case <-limit.C:
			if limit.over() {
				tb.Fatalf("not within %v: %s", timeout, fmt.Sprintf(format, args...))
			}
		}
	}
}

// Closed waits until ch is closed, dropping values that arrive before. After
// timeout it ends the test with the message.
func Closed[T any](tb testing.TB, timeout time.Duration, ch <-chan T, format string, args ...any) {
	tb.Helper()
	limit := newDeadline(timeout)
	defer limit.Stop()
	for {
		select {
		case _, ok := <-ch:
			if !ok {
				return
			}
		case <-limit.C:
			if limit.over() {
				tb.Fatalf("not within %v: %s", timeout, fmt.Sprintf(format, args...))
			}
		}
	}
}
