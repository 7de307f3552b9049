package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/statemachine"
)

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
	_, err := c.site.m.OpenAll(ctx, func(yield func(manager.Spec) bool) {
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
	if n := status.Ended[statemachine.Succeeded]; status.State != manager.PlanCompleted || n != int64(c.tasks) {
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
