package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tdf-go/tdf/bench/crew"
	"github.com/tdf-go/tdf/internal/base/timing"
)

// idleCost is what a worker costs that has nothing to do.
type idleCost struct {
	commands, redisCPU, ownCPU float64 // a second
	memory, connections        float64
	startup                    time.Duration // until all were registered
}

// reading is what Redis and this process have used so far.
type reading struct {
	at                                 time.Time
	reads, redis, own, memory, clients float64
}

func (f *fleet) read() (r reading, err error) {
	r.at, r.own = time.Now(), crew.ProcessorTime().Seconds()
	for _, look := range []struct {
		into *float64
		ask  func(context.Context) (float64, error)
	}{
		{&r.reads, f.site.Redis.Reads}, {&r.redis, f.site.Redis.CPU}, {&r.memory, f.site.Redis.Memory}, {&r.clients, f.site.Redis.Connections},
	} {
		if *look.into, err = look.ask(f.ctx); err != nil {
			return r, err
		}
	}
	return r, nil
}

// rest is what is used a second while nothing is to be done.
func (f *fleet) rest() (r reading, err error) {
	if !timing.Pause(f.ctx, f.o.settle) {
		return r, context.Cause(f.ctx)
	}
	before, err := f.read()
	if err != nil || !timing.Pause(f.ctx, f.o.watch) {
		return r, err
	}
	after, err := f.read()
	seconds := after.at.Sub(before.at).Seconds()
	return reading{
		reads: (after.reads - before.reads) / seconds, redis: (after.redis - before.redis) / seconds, own: (after.own - before.own) / seconds,
		memory: after.memory, clients: after.clients,
	}, err
}

// idleCost compares the others alone with the others and all workers.
func (f *fleet) idleCost() error {
	alone, err := f.rest()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := f.startWorkers(); err != nil {
		return err
	}
	f.idle.startup = time.Since(began)
	_, _ = fmt.Fprintf(f.progress, "%d workers after %.1f s\n", f.o.workers, f.idle.startup.Seconds())
	all, err := f.rest()
	n := float64(f.o.workers)
	f.idle.commands, f.idle.redisCPU, f.idle.ownCPU = (all.reads-alone.reads)/n, (all.redis-alone.redis)/n, (all.own-alone.own)/n
	f.idle.memory, f.idle.connections = (all.memory-alone.memory)/n, (all.clients-alone.clients)/n
	return err
}
