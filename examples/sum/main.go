// Command sum adds the numbers from M to N on any number of workers: tasks of
// up to P numbers each give partial sums, further tasks add those up, until one
// number is left.
//
//	sum [--continue] [--plan] M N P manager.cfg
//
// With --plan all tasks are opened at once, as a plan: those that add up the sums of
// others wait for them, and get them as words. Without it, this program waits.
//
// It starts with an empty namespace: whatever is in the one named by manager.cfg
// is deleted, and nothing else in that Redis. With --continue it goes on with
// what is there: after it was killed, or beside another one of the same sum.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/tdf-go/tdf/manager"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "sum:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// run does the whole work and writes what happens to out.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	m, err := manager.New(ctx, "sum", o.config)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	if err := prepare(ctx, m, o); err != nil {
		return err
	}
	fmt.Fprintf(out, "computing sum of [%d,%d] with bucket size p=%d\n", o.from, o.to, o.bucket)
	add := handled
	if o.plan {
		add = planned
	}
	result, err := add(ctx, m, out, o.tree)
	if err != nil {
		return err
	}
	return conclude(out, o, result)
}

// handled adds the numbers up in a loop: whenever tasks have ended, it opens those
// that need them.
func handled(ctx context.Context, m *manager.Manager, out io.Writer, t tree) (int64, error) {
	a := newAdder(t, out)
	if err := a.begin(ctx, m); err != nil {
		return 0, err
	}
	if err := m.Run(ctx, a.handlers()); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, errors.New("stopped before the end")
	}
	return a.result(ctx, m)
}

// prepare empties the namespace, or sees that it holds nothing but this sum.
func prepare(ctx context.Context, m *manager.Manager, o options) error {
	if !o.goOn {
		_, err := m.Flush(ctx)
		return err
	}
	if o.plan {
		return nil // a plan has tasks of its own
	}
	first, err := m.Task(ctx, 1)
	if errors.Is(err, manager.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, mine := o.placeOf(first.Key); !mine {
		return fmt.Errorf("the namespace %s holds something else: leave out --continue to have it deleted", m.Namespace())
	}
	return nil
}

// conclude prints the result beside what it should be.
func conclude(out io.Writer, o options, result int64) error {
	want := (o.to + o.from) * (o.to - o.from + 1) / 2
	fmt.Fprintf(out, "FINAL RESULT: %d\n", result)
	fmt.Fprintf(out, "result should be: %d = (%d+%d) / 2 * (%d-%d+1)\n", want, o.to, o.from, o.to, o.from)
	if result != want {
		return fmt.Errorf("the result %d is wrong", result)
	}
	return nil
}
