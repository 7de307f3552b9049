// Command sum adds the numbers from M to N on any number of workers: tasks of
// up to P numbers each give partial sums, further tasks add those up, until one
// number is left.
//
//	sum M N P manager.cfg
//
// It starts with an empty namespace: whatever is in the one named by manager.cfg
// is deleted, and nothing else in that Redis. Killed and started again, it
// therefore begins from the start.
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
	if _, err := m.Flush(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "computing sum of [%d,%d] with bucket size p=%d\n", o.from, o.to, o.bucket)
	a := newAdder(o.bucket, out)
	if err := a.open(ctx, m, numbers(o.from, o.to)); err != nil {
		return err
	}
	if err := m.Run(ctx, a.handlers()); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("stopped before the end")
	}
	return conclude(out, a, o)
}

// conclude prints the result beside what it should be.
func conclude(out io.Writer, a *adder, o options) error {
	result, err := a.result()
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
