package lifecycletest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	errEnded      = errors.New("Run ended without being cancelled")
	errNotReady   = errors.New("Run ended before it was ready")
	errNotRefused = errors.New("second Run was not refused in time with the expected error")
)

// run is one call of Run in a goroutine of its own.
type run struct {
	cancel context.CancelFunc
	ready  <-chan struct{}
	limit  time.Duration
	done   chan struct{} // closed when Run has returned
	err    error         // what Run returned; read after done
}

func (b Battery) limit() time.Duration {
	if b.Limit > 0 {
		return b.Limit
	}
	return defaultLimit
}

func (b Battery) start(ctx context.Context, d Daemon) *run {
	ctx, cancel := context.WithCancel(ctx)
	r := &run{cancel: cancel, limit: b.limit(), done: make(chan struct{})}
	if b.Ready != nil {
		r.ready = b.Ready(d)
	}
	go func() {
		defer close(r.done)
		r.err = d.Run(ctx)
	}()
	return r
}

// awaitReady waits until the daemon is at work.
func (r *run) awaitReady() error {
	if r.ready == nil {
		return nil
	}
	timer := time.NewTimer(r.limit)
	defer timer.Stop()
	select {
	case <-r.ready:
		return nil
	case <-r.done:
		return errors.Join(errNotReady, r.err)
	case <-timer.C:
		return fmt.Errorf("not ready within %v", r.limit)
	}
}

// staysUp watches the run for a moment and reports it if it ends by itself.
func (r *run) staysUp() error {
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case <-r.done:
		return errors.Join(errEnded, r.err)
	case <-timer.C:
		return nil
	}
}

// stop cancels the run and waits for its end.
func (r *run) stop() error {
	r.cancel()
	return r.awaitEnd()
}

// awaitEnd waits for the end of a run whose context is, or soon will be, done.
func (r *run) awaitEnd() error {
	defer r.cancel()
	timer := time.NewTimer(r.limit)
	defer timer.Stop()
	select {
	case <-r.done:
		return cleanStop(r.err)
	case <-timer.C:
		return fmt.Errorf("Run did not return within %v of its cancellation", r.limit)
	}
}

// cleanStop accepts what Run may return when its context is done.
func cleanStop(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return fmt.Errorf("Run returned an error for a stop that was asked for: %w", err)
}
