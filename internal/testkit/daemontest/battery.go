package daemontest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Runner is something that runs until its context is done.
type Runner interface {
	Run(ctx context.Context) error
}

// Battery is a battery of tests that whatever has a Run(ctx) error must pass. It says
// how to make the daemon, and what to expect of it.
type Battery struct {
	// New makes a fresh daemon. What it needs is released by tb.Cleanup.
	New func(tb testing.TB) Runner
	// Ready returns a channel that is closed (or receives) once the daemon is at
	// work. Nil, or a nil channel: the battery cancels without waiting for that.
	Ready func(Runner) <-chan struct{}
	// SecondRun is the error, matched by errors.Is, of a second Run of one daemon,
	// at the same time or later. Nil: a daemon may run again after it has ended.
	SecondRun error
	// Limit bounds each start and each stop. Default: 10 s.
	Limit time.Duration
}

const (
	defaultLimit = 10 * time.Second
	rounds       = 20
	settle       = 50 * time.Millisecond // how long a run is watched for ending by itself
)

// trial is one test of the battery: it returns what is wrong.
type trial struct {
	name string
	run  func(tb testing.TB) error
}

// Exercise runs the battery, each part as a subtest, and after each of them
// checks that no goroutine is left. The calling test must not be parallel, or it
// would be blamed for the goroutines of others.
func (b Battery) Exercise(t *testing.T) {
	t.Helper()
	for _, c := range b.trials() {
		before := goleak.IgnoreCurrent()
		t.Run(c.name, func(t *testing.T) {
			if err := c.run(t); err != nil {
				t.Error(err)
			}
		})
		if err := goleak.Find(before); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func (b Battery) trials() []trial {
	return []trial{
		{"cancel ends Run", b.cancelEndsRun},
		{"deadline ends Run", b.deadlineEndsRun},
		{"cancelled before Run", b.cancelledBeforeRun},
		{"second Run at the same time", b.secondRunBeside},
		{"second Run afterwards", b.secondRunAfter},
		{"two instances", b.twoInstances},
		{"start beside stop", b.startBesideStop},
	}
}

func (b Battery) cancelEndsRun(tb testing.TB) error {
	r := b.start(tb.Context(), b.New(tb))
	return errors.Join(r.awaitReady(), r.staysUp(), r.stop())
}

func (b Battery) deadlineEndsRun(tb testing.TB) error {
	ctx, cancel := context.WithTimeout(tb.Context(), 50*time.Millisecond)
	defer cancel()
	return b.start(ctx, b.New(tb)).awaitEnd()
}

func (b Battery) cancelledBeforeRun(tb testing.TB) error {
	ctx, cancel := context.WithCancel(tb.Context())
	cancel()
	return b.start(ctx, b.New(tb)).awaitEnd()
}

// secondRunBeside is only about daemons that refuse it: for the others two runs
// at once have no defined meaning.
func (b Battery) secondRunBeside(tb testing.TB) error {
	if b.SecondRun == nil {
		return nil
	}
	d := b.New(tb)
	first := b.start(tb.Context(), d)
	if err := first.awaitReady(); err != nil {
		return errors.Join(err, first.stop())
	}
	return errors.Join(b.refused(tb.Context(), d), first.stop())
}

func (b Battery) secondRunAfter(tb testing.TB) error {
	d := b.New(tb)
	first := b.start(tb.Context(), d)
	if err := errors.Join(first.awaitReady(), first.stop()); err != nil {
		return err
	}
	if b.SecondRun != nil {
		return b.refused(tb.Context(), d)
	}
	return b.start(tb.Context(), d).stop()
}

// refused runs d once more and wants the error of a second run.
func (b Battery) refused(ctx context.Context, d Runner) error {
	second := b.start(ctx, d)
	defer second.cancel()
	select {
	case <-second.done:
	case <-time.After(b.limit()):
		return errors.Join(errNotRefused, second.stop())
	}
	if !errors.Is(second.err, b.SecondRun) {
		return errors.Join(errNotRefused, b.SecondRun, second.err)
	}
	return nil
}

func (b Battery) twoInstances(tb testing.TB) error {
	one, two := b.start(tb.Context(), b.New(tb)), b.start(tb.Context(), b.New(tb))
	err := errors.Join(one.awaitReady(), two.awaitReady(), one.stop())
	if alone := two.staysUp(); alone != nil {
		err = errors.Join(err, fmt.Errorf("the second instance, after the end of the first: %w", alone))
	}
	return errors.Join(err, two.stop())
}

// startBesideStop cancels while Run starts, at a different moment each time.
func (b Battery) startBesideStop(tb testing.TB) error {
	for i := range rounds {
		ctx, cancel := context.WithCancel(tb.Context())
		time.AfterFunc(time.Duration(i)*50*time.Microsecond, cancel)
		if err := b.start(ctx, b.New(tb)).awaitEnd(); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
	}
	return nil
}

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

func (b Battery) start(ctx context.Context, d Runner) *run {
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
	select {
	case <-r.ready:
		return nil
	case <-r.done:
		return errors.Join(errNotReady, r.err)
	case <-time.After(r.limit):
		return fmt.Errorf("not ready within %v", r.limit)
	}
}

// staysUp watches the run for a moment and reports it if it ends by itself.
func (r *run) staysUp() error {
	select {
	case <-r.done:
		return errors.Join(errEnded, r.err)
	case <-time.After(settle):
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
	select {
	case <-r.done:
		return cleanStop(r.err)
	case <-time.After(r.limit):
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
