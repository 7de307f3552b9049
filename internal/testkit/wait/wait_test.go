package wait_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// recorder keeps what a helper ends the test with.
type recorder struct {
	testing.TB
	fatal string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// fatalOf returns the message that f ended its test with, empty if it did not.
func fatalOf(t *testing.T, f func(tb testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r.fatal
}

const short = 20 * time.Millisecond

func TestEventually(t *testing.T) {
	t.Parallel()
	calls := 0
	wait.Eventually(t, time.Minute, func() bool { calls++; return calls == 3 }, "the third call")
	if calls != 3 {
		t.Errorf("condition called %d times, want 3", calls)
	}
	got := fatalOf(t, func(tb testing.TB) { wait.Eventually(tb, short, func() bool { return false }, "task %d", 7) })
	if want := "not within 20ms: task 7"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

func TestNever(t *testing.T) {
	t.Parallel()
	wait.Never(t, short, func() bool { return false }, "anything")
	got := fatalOf(t, func(tb testing.TB) { wait.Never(tb, time.Minute, func() bool { return true }, "it") })
	if !strings.HasPrefix(got, "happened within") {
		t.Errorf("message %q", got)
	}
}

func TestReceive(t *testing.T) {
	t.Parallel()
	ch := make(chan int, 1)
	ch <- 5
	if got := wait.Receive(t, time.Minute, ch, "a number"); got != 5 {
		t.Errorf("received %d, want 5", got)
	}
	if got := fatalOf(t, func(tb testing.TB) { wait.Receive(tb, short, ch, "a number") }); got == "" {
		t.Error("an empty channel passed")
	}
	close(ch)
	if got := fatalOf(t, func(tb testing.TB) { wait.Receive(tb, short, ch, "a number") }); got == "" {
		t.Error("a closed channel passed")
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	ch := make(chan int, 1)
	if got := fatalOf(t, func(tb testing.TB) { wait.Closed(tb, short, ch, "the end") }); got == "" {
		t.Error("an open channel passed")
	}
	ch <- 1
	close(ch)
	wait.Closed(t, time.Minute, ch, "the end")
}
