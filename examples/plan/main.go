// Command plan runs a stress plan on any number of workers: the first
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
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/task"
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
	config, err := tdf.Load(o.config)
	if err != nil {
		return err
	}
	site, err := tdf.Connect(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = site.Close() }()
	m := manager.New(site, "plan", manager.Options{})
	p, err := plan.New(ctx, m, "stress", plan.OnFailure(task.FailureHolds))
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

var errUsage = errors.New("usage: plan [--seed S] TASKS NEEDS manager.cfg")

// options are the arguments.
type options struct {
	tasks, needs int
	seed         uint64
	config       string
}

func parse(args []string) (options, error) {
	o := options{seed: 1}
	if len(args) > 1 && args[0] == "--seed" {
		seed, err := strconv.ParseUint(args[1], 10, 64)
		if err != nil {
			return o, fmt.Errorf("seed S=%s: write a whole number that is not negative\n%w", args[1], errUsage)
		}
		o.seed, args = seed, args[2:]
	}
	if len(args) != 3 {
		return o, fmt.Errorf("expecting 3 arguments (%d given)\n%w", len(args), errUsage)
	}
	o.config = args[2]
	var err error
	if o.tasks, err = integer("TASKS", args[0], 1, 100_000); err != nil {
		return o, err
	}
	o.needs, err = integer("NEEDS", args[1], 1, 1000)
	return o, err
}

func integer(name, text string, lowest, highest int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < lowest || n > highest {
		return 0, fmt.Errorf("%s=%s: write a whole number from %d to %d\n%w", name, text, lowest, highest, errUsage)
	}
	return n, nil
}

// build adds the tasks to a plan, in the order of their numbers.
func build(p *plan.Plan, o options) []*plan.Task {
	chance := rand.New(rand.NewPCG(o.seed, 0))
	tasks := make([]*plan.Task, o.tasks)
	for n := range tasks {
		var deps []plan.Dep
		var wanted []string
		if n >= o.needs {
			for _, k := range chance.Perm(n)[:o.needs] {
				deps, wanted = append(deps, tasks[k]), append(wanted, strconv.Itoa(k))
			}
		}
		// A word must not be empty: a leading - stands for nothing.
		input := strconv.Itoa(n) + " -" + strings.Join(wanted, ",")
		tasks[n] = p.Add(task.Spec{Program: "plan", Source: "rsync:run.sh", Input: input}, deps...)
	}
	return tasks
}
