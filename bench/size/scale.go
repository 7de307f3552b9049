package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/bench/crew"
	"github.com/tdf-go/tdf/bench/stats"
)

// crowd is a site in which so many tasks wait.
type crowd struct {
	site    *crew.Site
	waiting int
	times   []float64 // each round: microseconds a task, from claim to archived
	cpu     []float64 // and of Redis' processor time
}

// measureScale runs a slice of the tasks of each crowd in turn. The tasks that wait are those that run.
func measureScale(ctx context.Context, o options, progress io.Writer) (_ string, err error) {
	crowds := []*crowd{{waiting: o.few}, {waiting: o.many}}
	for _, c := range crowds {
		if c.site, err = crew.NewSite(ctx, o.conf, "--appendonly", "no"); err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, c.site.Close()) }()
		if err := c.site.Open(ctx, c.waiting, o.spec()); err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(progress, "%d tasks wait\n", c.waiting)
	}
	for round := range o.rounds {
		order := slices.Clone(crowds)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, c := range order {
			if err := c.run(ctx, o); err != nil {
				return "", fmt.Errorf("behind %d: %w", c.waiting, err)
			}
			_, _ = fmt.Fprintf(progress, "round %d: behind %d: %.0f us a task, %.0f of Redis\n", round+1, c.waiting, c.times[round], c.cpu[round])
		}
	}
	return scaleTable(o, crowds), nil
}

func scaleTable(o options, crowds []*crowd) string {
	var w strings.Builder
	fmt.Fprintf(&w, "Scale: claimed to archived, Go handlers, a worker of %d slots, %d tasks a round, %d interleaved rounds\n\n",
		o.slots, o.slice, o.rounds)
	fmt.Fprint(&w, "| tasks that wait | µs a task | lowest to highest | of the first | Redis' processor time, µs a task | of the first |\n"+
		"|---|--:|--:|--:|--:|--:|\n")
	for _, c := range crowds {
		fmt.Fprintf(&w, "| %d | %.0f | %.0f-%.0f | %.2f | %.0f | %.2f |\n",
			c.waiting, stats.Median(c.times), slices.Min(c.times), slices.Max(c.times), stats.Median(stats.Ratios(c.times, crowds[0].times)),
			stats.Median(c.cpu), stats.Median(stats.Ratios(c.cpu, crowds[0].cpu)))
	}
	return w.String()
}

// run lets a crew, once it is at work, archive a slice, and opens as many tasks anew.
func (c *crowd) run(ctx context.Context, o options) error {
	before, err := c.site.Redis.DB.ZCard(ctx, c.site.Key("archived")).Result()
	if err != nil {
		return err
	}
	life, hands, err := o.crew(ctx, c.site)
	if err != nil {
		return err
	}
	err = errors.Join(c.watch(life, before, o.slice), hands.Stop())
	if err != nil {
		return err
	}
	waiting, err := c.site.Redis.DB.ZCard(ctx, c.site.Key("open")).Result()
	if err != nil || int(waiting) >= c.waiting {
		return err
	}
	return c.site.Open(ctx, c.waiting-int(waiting), o.spec())
}

// warmUp is the part of a slice after which the clock starts: the crew has begun by then.
const warmUp = 10

func (c *crowd) watch(ctx context.Context, before int64, slice int) error {
	first, began, err := awaitArchived(ctx, c.site, before+int64(slice/warmUp))
	if err != nil {
		return err
	}
	cpu, err := c.site.Redis.CPU(ctx)
	if err != nil {
		return err
	}
	last, ended, err := awaitArchived(ctx, c.site, first+int64(slice))
	if err != nil {
		return err
	}
	used, err := c.site.Redis.CPU(ctx)
	n := float64(last - first)
	c.times = append(c.times, float64(ended.Sub(began).Microseconds())/n)
	c.cpu = append(c.cpu, (used-cpu)*1e6/n)
	return err
}
