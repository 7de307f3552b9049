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
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// A bound in time says how long the code under test may wait, not how long a busy
// machine takes to run it. So bounds count only the time in which the processors
// had nothing to do: while tests beside this one keep them busy, no bound runs
// out; alone on a quiet machine it holds as it is written. What takes four times
// as long and ten seconds more fails in any case.
const (
	mostTimes = 4
	mostMore  = 10 * time.Second
)

// Within fails the test if more than most lies between from and to, not counting
// the share of that time in which the machine was busy.
func Within(tb testing.TB, what string, from, to time.Time, most time.Duration) {
	tb.Helper()
	took, counted := to.Sub(from), loads.idle(from, to)
	if counted > most || took > mostTimes*most+mostMore {
		tb.Errorf("%s took %v, %v of it on an idle machine, want at most %v", what, took, counted, most)
	}
}

// deadline is the end of a wait that does not count the time of a busy machine.
type deadline struct {
	*time.Timer
	began   time.Time
	timeout time.Duration
}

func newDeadline(timeout time.Duration) deadline {
	loads.note()
	return deadline{time.NewTimer(timeout), time.Now(), timeout}
}

// over says whether the time is up now that the timer has fired; if not, the timer
// runs on for what is left.
func (d deadline) over() bool {
	now := time.Now()
	left := d.timeout - loads.idle(d.began, now)
	if left <= 0 || now.Sub(d.began) >= mostTimes*d.timeout+mostMore {
		return true
	}
	d.Reset(max(left, pollEvery))
	return false
}

// load is what the processors have done since the boot.
type load struct {
	at          time.Time
	idle, total uint64 // in ticks of all processors
}

// history keeps the load at several times, so that it can be told later how much
// of a span was idle. No goroutine notes it, since tests look for leaked ones.
type history struct {
	mu    sync.Mutex
	noted []load
}

const (
	noteEvery = 50 * time.Millisecond
	mostNoted = 1 << 12
)

// loads begins with the first wait: a test binary that starts itself as another
// program may not open files before that one has closed what it inherited.
var loads history

// note adds the load of now, at most every 50 ms.
func (h *history) note() {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if n := len(h.noted); n > 0 && now.Sub(h.noted[n-1].at) < noteEvery {
		return
	}
	if len(h.noted) == mostNoted {
		h.noted = slices.Delete(h.noted, 1, mostNoted/2) // the first one holds for all before
	}
	h.noted = append(h.noted, current(now))
}

// idle returns for how much of a span the processors had nothing to do, as far as
// the loads noted around it tell.
func (h *history) idle(from, to time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	after, _ := slices.BinarySearchFunc(h.noted, from, func(l load, t time.Time) int { return l.at.Compare(t) })
	if len(h.noted) == 0 {
		return to.Sub(from)
	}
	return time.Duration(float64(to.Sub(from)) * h.noted[max(after-1, 0)].idleUntil(current(time.Now())))
}

// current is the load of now, an empty one where /proc/stat cannot be read.
func current(now time.Time) load {
	text, _ := os.ReadFile("/proc/stat") // a load of zero ticks says nothing
	return parse(now, string(text))
}

// parse reads the first line of /proc/stat. Waiting for a disk and time that the
// host gave to others are not idle.
func parse(at time.Time, text string) load {
	const idle, steal = 4, 8 // guests, which come after it, are in user already
	l := load{at: at}
	line, _, _ := strings.Cut(text, "\n")
	for i, word := range strings.Fields(line) {
		n, err := strconv.ParseUint(word, 10, 64)
		if err != nil || i > steal {
			continue
		}
		if i == idle {
			l.idle = n
		}
		l.total += n
	}
	return l
}

// idleUntil returns the idle share of what was done between two loads: all of it
// if that cannot be told.
func (l load) idleUntil(b load) float64 {
	if b.total <= l.total {
		return 1
	}
	return float64(b.idle-l.idle) / float64(b.total-l.total)
}
