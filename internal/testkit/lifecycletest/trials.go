package lifecycletest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

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
func (b Battery) refused(ctx context.Context, d Daemon) error {
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
