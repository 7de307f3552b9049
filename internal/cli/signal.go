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
// with a *SignalError as its cause. The second one ends the process at once.
// stop gives the signals back and waits for the goroutine behind it.
func SignalContext(parent context.Context) (ctx context.Context, stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, stopWatch := watchSignals(parent, signals, os.Exit)
	return ctx, func() {
		signal.Stop(signals)
		stopWatch()
	}
}

// watchSignals is SignalContext with the signals and the end of the process
// given from outside.
func watchSignals(parent context.Context, signals <-chan os.Signal, exit func(int)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for first := true; ; first = false {
			select {
			case s := <-signals:
				cause := &SignalError{Signal: s}
				if !first {
					exit(cause.ExitCode())
					return
				}
				cancel(cause)
			case <-done:
				return
			}
		}
	})
	var once sync.Once
	return ctx, func() {
		once.Do(func() { close(done) })
		watching.Wait()
		cancel(nil)
	}
}
