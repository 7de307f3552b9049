package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tdf-go/tdf/bench/crew"
	"github.com/tdf-go/tdf/internal/base/timing"
)

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
	spec.StartAfter = "4000000000"
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
