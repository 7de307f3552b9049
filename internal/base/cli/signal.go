package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// SignalError is the cause of a context cancelled by a signal.
type SignalError struct{ Signal os.Signal }

// Error names the signal.
func (e *SignalError) Error() string { return "stopped by signal: " + e.Signal.String() }

// ExitCode is 128 plus the number of the signal: 130 for INT, 143 for TERM.
func (e *SignalError) ExitCode() int {
	if number, ok := e.Signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return ExitTaskFailed
}

// SignalContext returns a context that the first SIGINT or SIGTERM cancels,
// with a *SignalError as its cause. The second one ends the process at once,
// unless [OnSecondSignal] has been called; then the third does. stop gives the
// signals back and waits for the goroutine behind it.
func SignalContext(parent context.Context) (ctx context.Context, stop func()) {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, stopWatch := watchSignals(parent, signals, os.Exit)
	return ctx, func() {
		signal.Stop(signals)
		stopWatch()
	}
}

// outliveConnection makes this process, a daemon, go on when the connection over
// which it was started breaks: SIGHUP, which a terminal sends then, does nothing,
// and neither does SIGPIPE, which would end the process when it writes to a log
// that nobody reads any more.
func outliveConnection() {
	// Caught and dropped: what is ignored, programs that the daemon starts would
	// ignore as well.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGPIPE)
}

// OnSecondSignal says what the second signal does instead of ending the
// process: f is called once, in a goroutine of its own, and must come to an
// end; the third signal ends the process. ctx is the context of the command or
// one made from it. A later call replaces f. Where no [SignalContext] stands
// behind ctx nothing happens.
func OnSecondSignal(ctx context.Context, f func()) {
	if w, ok := ctx.Value(watcherKey{}).(*watcher); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.second = f
	}
}

type watcherKey struct{}

// watcher acts on signals, each according to how many came before it.
type watcher struct {
	cancel context.CancelCauseFunc
	exit   func(int)
	calls  sync.WaitGroup

	mu     sync.Mutex
	second func()
}

// watchSignals is SignalContext with the signals and the end of the process
// given from outside.
func watchSignals(parent context.Context, signals <-chan os.Signal, exit func(int)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	w := &watcher{cancel: cancel, exit: exit}
	done := make(chan struct{})
	w.calls.Go(func() { w.watch(signals, done) })
	var once sync.Once
	return context.WithValue(ctx, watcherKey{}, w), func() {
		once.Do(func() { close(done) })
		w.calls.Wait()
		cancel(nil)
	}
}

// watch ends after the signal that ends the process.
func (w *watcher) watch(signals <-chan os.Signal, done <-chan struct{}) {
	for n := 1; ; n++ {
		var cause SignalError
		select {
		case cause.Signal = <-signals:
		case <-done:
			return
		}
		w.mu.Lock()
		second := w.second
		w.mu.Unlock()
		switch {
		case n == 1:
			w.cancel(&cause)
		case n == 2 && second != nil:
			w.calls.Go(second)
		default:
			w.exit(cause.ExitCode())
			return
		}
	}
}
