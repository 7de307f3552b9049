// Command sum adds the numbers from M to N on any number of workers: tasks of
// up to P numbers each give partial sums, further tasks add those up, until one
// number is left.
//
//	sum [--continue] M N P manager.cfg
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
	a := newAdder(o.tree, out)
	if err := a.begin(ctx, m); err != nil {
		return err
	}
	if err := m.Run(ctx, a.handlers()); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("stopped before the end")
	}
	return conclude(ctx, m, out, a, o)
}

// prepare empties the namespace, or sees that it holds nothing but this sum.
func prepare(ctx context.Context, m *manager.Manager, o options) error {
	if !o.goOn {
		_, err := m.Flush(ctx)
		return err
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
func conclude(ctx context.Context, m *manager.Manager, out io.Writer, a *adder, o options) error {
	result, err := a.result(ctx, m)
	if err != nil {
		return err
	}
	want := (o.to + o.from) * (o.to - o.from + 1) / 2
	fmt.Fprintf(out, "FINAL RESULT: %d\n", result)
	fmt.Fprintf(out, "result should be: %d = (%d+%d) / 2 * (%d-%d+1)\n", want, o.to, o.from, o.to, o.from)
	if result != want {
		return fmt.Errorf("the result %d is wrong", result)
	}
	return nil
}
