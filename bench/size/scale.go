package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/bench/crew"
	"github.com/tdf-go/tdf/bench/stats"
	"github.com/tdf-go/tdf/internal/base/timing"
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

// rest is what is used while nothing is to be done, a second.
type rest struct {
	own, redis float64 // processor time of this process and of Redis, in cores
	reads      float64 // commands that Redis was sent
}

// watch looks for a while at what a crew uses that has come to rest.
func watch(ctx context.Context, s *crew.Site, settle, span time.Duration) (r rest, err error) {
	if !timing.Pause(ctx, settle) {
		return r, context.Cause(ctx)
	}
	began, before, err := sample(ctx, s)
	if err != nil {
		return r, err
	}
	if !timing.Pause(ctx, span) {
		return r, context.Cause(ctx)
	}
	ended, after, err := sample(ctx, s)
	seconds := ended.Sub(began).Seconds()
	return rest{
		own: (after.own - before.own) / seconds, redis: (after.redis - before.redis) / seconds,
		reads: (after.reads - before.reads - ownReads) / seconds,
	}, err
}

// ownReads is how many commands of a sample are between the two counts.
const ownReads = 3

func sample(ctx context.Context, s *crew.Site) (at time.Time, r rest, err error) {
	r.own = crew.ProcessorTime().Seconds()
	if r.redis, err = s.Redis.CPU(ctx); err != nil {
		return at, r, err
	}
	r.reads, err = s.Redis.Reads(ctx)
	return time.Now(), r, err
}

// measureQuiet watches a server with few and with many tasks that begin much later.
func measureQuiet(ctx context.Context, o options, progress io.Writer) (_ string, err error) {
	s, err := crew.NewSite(ctx, o.conf, "--appendonly", "no")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var w strings.Builder
	fmt.Fprintf(&w, "Quiet: a server with nothing due, watched for %s; processor time as a share of a core\n\n"+
		"| tasks that wait | server | Redis | Redis without a server |\n|---|--:|--:|--:|\n", o.watch)
	spec := finite(o.spec())
	spec.StartAfter = time.Unix(4000000000, 0)
	for i, n := range []int{o.few, o.many - o.few} {
		if n == 0 {
			continue
		}
		if err := s.Open(ctx, n, spec); err != nil {
			return "", err
		}
		waiting := []int{o.few, o.many}[i]
		alone, err := watch(ctx, s, 0, o.watch/2)
		if err != nil {
			return "", err
		}
		r, err := o.quiet(ctx, s)
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(progress, "%d: server %.4f, Redis %.4f\n", waiting, r.own, r.redis)
		fmt.Fprintf(&w, "| %d | %.2f %% | %.2f %% | %.2f %% |\n", waiting, 100*r.own, 100*r.redis, 100*alone.redis)
	}
	return w.String(), nil
}

func (o *options) quiet(ctx context.Context, s *crew.Site) (r rest, err error) {
	life, c := s.Gather(ctx)
	if err = c.Server("server"); err == nil {
		r, err = watch(life, s, o.settle, o.watch)
	}
	return r, errors.Join(err, c.Stop())
}

// measureIdle watches workers that find nothing to do, beside a server.
func measureIdle(ctx context.Context, o options, _ io.Writer) (_ string, err error) {
	s, err := crew.NewSite(ctx, o.conf)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	server, err := o.quiet(ctx, s)
	if err != nil {
		return "", err
	}
	life, c := s.Gather(ctx)
	err = c.Server("server")
	for i := range o.idlers {
		err = errors.Join(err, c.Worker(crew.Hand{Name: fmt.Sprintf("worker-%d", i), Slots: 2, Pool: 4, Handlers: o.handlers()}))
	}
	var r rest
	if err == nil {
		r, err = watch(life, s, o.settle, o.watch)
	}
	if err = errors.Join(err, c.Stop()); err != nil {
		return "", err
	}
	n := float64(o.idlers)
	var w strings.Builder
	fmt.Fprintf(&w, "Idle: %d workers without a task for %s, watched for %s, beside a server that sends %.1f commands a second\n\n",
		o.idlers, o.settle, o.watch, server.reads)
	fmt.Fprint(&w, "| | a worker |\n|---|--:|\n")
	fmt.Fprintf(&w, "| commands a second | %.2f |\n| its processor time, share of a core | %.3f %% |\n"+
		"| Redis' processor time, share of a core | %.3f %% |\n",
		(r.reads-server.reads)/n, 100*(r.own-server.own)/n, 100*(r.redis-server.redis)/n)
	return w.String(), nil
}
