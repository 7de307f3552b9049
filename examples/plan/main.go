// Command plan runs the stress plan of zk-plan on any number of workers: the first
// NEEDS of its tasks need nothing, each other one needs the results of NEEDS
// before it, taken by chance.
//
//	plan [--seed S] TASKS NEEDS manager.cfg
//
// Each task looks whether it has got the results it needs, in their order, and
// prints its number.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "plan:", err)
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
	m, err := manager.New(ctx, "plan", o.config)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	p, err := plan.New(ctx, m, "stress", plan.OnFailure(manager.FailureHolds))
	if err != nil {
		return err
	}
	tasks := build(p, o)
	began := time.Now()
	if err := p.Ready(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "plan %d: %d tasks, each needs %d others (seed %d)\n", p.ID(), o.tasks, o.needs, o.seed)
	status, err := p.Wait(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s after %.1f s: %v\n", status.State, time.Since(began).Seconds(), status.Ended)
	return check(ctx, p, tasks, out)
}

// check sees that every task has brought its number.
func check(ctx context.Context, p *plan.Plan, tasks []*plan.Task, out io.Writer) error {
	for n, t := range tasks {
		result, err := p.Result(ctx, t)
		if err != nil {
			return err
		}
		if result != strconv.Itoa(n) {
			return fmt.Errorf("task %d has brought %q", n, result)
		}
	}
	fmt.Fprintf(out, "%d numbers, each in its place\n", len(tasks))
	return nil
}
