// Command plans measures what plans cost: it builds one of layers, in which each task needs some of the layer before, and
// lets real servers and workers with a Go handler run it, beside as many tasks that need nothing; and it lets a server
// release half a plan at once. Each run has a private redis-server; the rounds are interleaved, and the results of all
// tasks are checked. The tables are Markdown; bench/README.md says how to read them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/bench/frame"
	"github.com/tdf-go/tdf/bench/redisd"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func main() { frame.Main("plans", run) }

// run measures and writes the tables to out and its progress to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	var f *figures
	err = frame.Within(ctx, o.limit, func(ctx context.Context) (err error) {
		f, err = measure(ctx, o, progress)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, f.tables(o)); err != nil || !o.strict {
		return err
	}
	return f.check()
}

// kind is what a run is for.
type kind int

const (
	flatKind kind = iota
	planKind
	releaseKind
	kinds
)

// String is a column of the table.
func (k kind) String() string { return [...]string{"unconnected", "plan", "release"}[k] }

// slice is a part of the tasks, run to the end.
type slice struct {
	took time.Duration
	// redisCPU and ownCPU are the processor time, of Redis and of this process.
	redisCPU, ownCPU time.Duration
}

// life is what one kind of task costs from its making to its end.
type life struct {
	build  time.Duration
	slices []slice
	// empty, waiting and ended are the bytes that Redis has allocated without tasks, before and after they ran.
	empty, waiting, ended float64
}

// figures are what was measured.
type figures struct {
	lives   [2]life // of flatKind and planKind
	release time.Duration
	slow    [kinds]map[string]slowScript
	// shared says that others took time from Redis while it carried out scripts.
	shared bool
	pauses redisd.Pauses // of the machine
	// scripts is how long those of the plan, and of its release, have run.
	scripts time.Duration
}

// measure builds both kinds of tasks, runs a slice of each in turn, because a machine that is busy for a while slows
// neighbours in time alike, and then measures the release alone.
func measure(ctx context.Context, o options, progress io.Writer) (*figures, error) {
	f := &figures{pauses: redisd.Pauses{Limit: longestScript}}
	f.pauses.Watch(ctx, o.pauses)
	err := f.measureLives(ctx, o, progress)
	if err == nil {
		err = f.measureRelease(ctx, o, progress)
	}
	f.pauses.Watch(ctx, o.pauses)
	return f, err
}

func (f *figures) measureLives(ctx context.Context, o options, progress io.Writer) (err error) {
	var all [2]*contender
	for k, g := range [...]graph{flatKind: o.flat(), planKind: o.graph} {
		s, err := newSite(ctx, o)
		if err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, s.close())
			f.slow[k] = s.slow.found
		}()
		c := &contender{kind(k), g, s, nil, &f.lives[k]}
		if err := c.fill(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.kind, err)
		}
		_, _ = fmt.Fprintf(progress, "%s: built %d tasks in %.1f s\n", c.kind, g.tasks, c.build.Seconds())
		all[k], f.shared = c, !s.preferred
	}
	for n := range o.slices {
		for _, c := range all {
			if err := c.run(ctx, n); err != nil {
				return fmt.Errorf("%s: %w", c.kind, err)
			}
			_, _ = fmt.Fprintf(progress, "slice %d of %d: %s: %.1f s\n", n+1, o.slices, c.kind, c.slices[n].took.Seconds())
		}
	}
	for _, c := range all {
		if err := c.check(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.kind, err)
		}
	}
	return f.addScripts(ctx, all[planKind].site)
}

// addScripts adds how long the scripts of a site have run.
func (f *figures) addScripts(ctx context.Context, s *site) error {
	took, err := s.Redis.ScriptTime(ctx)
	f.scripts += took
	return err
}

// measureRelease lets a server release the second half of a plan of which the first has ended while there was none.
func (f *figures) measureRelease(ctx context.Context, o options, progress io.Writer) error {
	g := o.halves()
	s, err := newSite(ctx, o)
	if err != nil {
		return err
	}
	f.release, err = s.release(ctx, g)
	if err = errors.Join(err, f.addScripts(ctx, s), s.close()); err != nil {
		return fmt.Errorf("%s: %w", releaseKind, err)
	}
	f.slow[releaseKind] = s.slow.found
	_, _ = fmt.Fprintf(progress, "%s: %d tasks, %d needs in %.1f s\n", releaseKind, g.tasks-g.layer, g.edges(), f.release.Seconds())
	return nil
}

// memory is what Redis has allocated, without its notes of slow calls.
func (s *site) memory(ctx context.Context) (float64, error) {
	if err := s.slow.take(ctx); err != nil {
		return 0, err
	}
	return s.Redis.Memory(ctx)
}

// release ends the first half by cancelling it, since without a server nothing else ends.
func (s *site) release(ctx context.Context, g graph) (took time.Duration, err error) {
	p, err := plan.New(ctx, s.m, "bench", plan.OnFailure(task.FailureContinues))
	if err != nil {
		return 0, err
	}
	g.add(p)
	if err := p.Send(ctx); err != nil {
		return 0, err
	}
	ids, err := s.m.PlanTasks(ctx, p.ID(), 0, g.layer)
	if err != nil {
		return 0, err
	}
	if _, err := s.m.Cancel(ctx, ids, "to release what needs it"); err != nil {
		return 0, err
	}
	if err := p.Ready(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	life, d, err := s.start(ctx, 0, g)
	if err != nil {
		return 0, err
	}
	err = s.await(life, statemachine.Open, g.tasks-g.layer)
	took = time.Since(began)
	return took, errors.Join(err, d.Stop())
}

// contender is one kind of tasks, on a Redis of its own.
type contender struct {
	kind
	graph
	site *site
	plan *plan.Plan // nil if the tasks need nothing
	*life
}

// fill opens all tasks, those that need one another in a plan that is then ready.
func (c *contender) fill(ctx context.Context) (err error) {
	before, err := c.site.memory(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if c.needs == 0 {
		err = c.fillFlat(ctx)
	} else if c.plan, err = plan.New(ctx, c.site.m, "bench"); err == nil {
		c.add(c.plan)
		err = c.plan.Ready(ctx)
	}
	if err != nil {
		return err
	}
	c.build = time.Since(began)
	c.empty = before
	c.waiting, err = c.site.memory(ctx)
	return err
}

func (c *contender) fillFlat(ctx context.Context) error {
	_, err := c.site.m.OpenAll(ctx, func(yield func(task.Spec) bool) {
		for n := range c.tasks {
			if !yield(spec(n)) {
				return
			}
		}
	})
	return err
}

// run lets servers and workers do the nth slice; their start is in the time.
func (c *contender) run(ctx context.Context, n int) (err error) {
	redis, err := c.site.Redis.CPU(ctx)
	if err != nil {
		return err
	}
	own, began := processorTime(), time.Now()
	life, d, err := c.site.start(ctx, c.site.o.workers, c.graph)
	if err != nil {
		return err
	}
	err = c.site.await(life, statemachine.Succeeded, c.tasks*(n+1)/c.site.o.slices)
	s := slice{took: time.Since(began), ownCPU: processorTime() - own}
	if err = errors.Join(err, d.Stop()); err != nil {
		return err
	}
	after, err := c.site.Redis.CPU(ctx)
	s.redisCPU = time.Duration((after - redis) * float64(time.Second))
	c.slices = append(c.slices, s)
	return err
}

// check looks at what became of the tasks. Each was checked by its handler.
func (c *contender) check(ctx context.Context) (err error) {
	if c.ended, err = c.site.memory(ctx); err != nil || c.plan == nil {
		return err
	}
	status, err := c.plan.Status(ctx)
	if err != nil {
		return err
	}
	if n := status.Ended[statemachine.Succeeded]; status.State != task.PlanCompleted || n != int64(c.tasks) {
		return fmt.Errorf("the plan is %s, and %d of its %d tasks have succeeded", status.State, n, c.tasks)
	}
	return nil
}

// processorTime is that of this process.
func processorTime() time.Duration {
	var usage unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &usage) // it fails only for another who
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// options say what to measure.
type options struct {
	graph
	slices, servers, workers, slots int
	limit, pauses                   time.Duration
	strict, profile                 bool
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("plans", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.IntVar(&o.tasks, "tasks", 100_000, "tasks of the plan, and tasks that need nothing beside it")
	flags.IntVar(&o.layer, "layer", 1000, "tasks of a layer")
	flags.IntVar(&o.needs, "needs", 10, "how many tasks of the layer before each task needs")
	flags.IntVar(&o.slices, "slices", 20, "parts in which both kinds of tasks run in turn")
	flags.IntVar(&o.servers, "servers", 1, "servers")
	flags.IntVar(&o.workers, "workers", 2, "workers")
	flags.IntVar(&o.slots, "slots", 8, "slots of a worker")
	flags.DurationVar(&o.limit, "limit", 30*time.Minute, "when to give up")
	flags.DurationVar(&o.pauses, "pauses", 30*time.Second, "how long to look for pauses of the machine, before and after")
	flags.BoolVar(&o.strict, "strict", false, fmt.Sprintf(
		"fail if a task of the plan takes more than %d times one that needs nothing, or its scripts more often more than %s "+
			"than the machine explains", mostRatio, longestScript))
	flags.BoolVar(&o.profile, "profile", false, "show what each script took in all; noting every call makes Redis slower")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	return o, o.check()
}

// slowFrom is from which time on calls are noted.
func (o *options) slowFrom() time.Duration {
	if o.profile {
		return 0
	}
	return slowFrom
}

func (o *options) check() error {
	err := frame.AtLeastOne(map[string]int{
		"tasks": o.tasks, "layer": o.layer, "needs": o.needs, "slices": o.slices, "servers": o.servers, "workers": o.workers, "slots": o.slots,
	})
	if err != nil {
		return err
	}
	if o.needs > o.layer {
		return fmt.Errorf("-needs=%d: a layer has %d tasks", o.needs, o.layer)
	}
	return nil
}
