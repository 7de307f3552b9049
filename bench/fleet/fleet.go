package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/bench/crew"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/worker"
)

// fleet is all that takes part.
type fleet struct {
	o        options
	progress io.Writer
	site     *crew.Site
	crew     *crew.Crew
	ctx      context.Context //nolint:containedctx // the life of the crew
	line     *line           // nil without a delay
	tally    *tally
	idle     idleCost
	loads    []load
}

// gather starts the daemons.
func gather(ctx context.Context, o options, progress io.Writer) (*fleet, error) {
	settings := []string{o.conf, "--maxclients", strconv.FormatUint(o.connections(), 10), "--tcp-backlog", "4096"}
	if o.aof {
		settings = append(settings, "--appendonly", "yes")
	}
	site, err := crew.NewSite(ctx, settings...)
	if err != nil {
		return nil, err
	}
	f := &fleet{o: o, progress: progress, site: site, tally: newTally(o)}
	f.ctx, f.crew = site.Gather(ctx)
	if err := f.start(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *fleet) close() error {
	err := f.crew.Stop()
	if f.line != nil {
		f.line.close()
	}
	return errors.Join(err, f.site.Close())
}

func (f *fleet) start() error {
	for i := range f.o.queues {
		if err := f.site.Store.AddQueue(f.ctx, route.NewQueue(queueName(i))); err != nil {
			return fmt.Errorf("making a queue: %w", err)
		}
	}
	for i := range f.o.servers {
		if err := f.crew.Server(fmt.Sprint("server-", i)); err != nil {
			return err
		}
	}
	for i := range f.o.managers {
		if err := f.crew.Archiver(fmt.Sprint("manager-", i)); err != nil {
			return err
		}
	}
	if f.o.delay > 0 {
		var err error
		if f.line, err = newLine(f.ctx, f.site.Redis.Socket(), f.o.delay); err != nil {
			return err
		}
	}
	return f.idleCost()
}

func queueName(i int) string { return fmt.Sprint("queue-", i) }

// together is how many workers begin at a time.
const together = 100

// startWorkers starts all workers, some at a time, and waits until they are registered.
func (f *fleet) startWorkers() error {
	for i := range f.o.workers {
		h := crew.Hand{
			Name: fmt.Sprint("worker-", i), Slots: f.o.slots, Pool: workerPool,
			Handlers: map[string]worker.Handler{program: f.tally.handler(i)},
		}
		if f.line != nil {
			h.Socket = f.line.socket
		}
		if err := f.crew.Worker(h); err != nil {
			return err
		}
		if n := i + 1; n%together == 0 || n == f.o.workers {
			if err := f.awaitCard("lease", int64(n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// pollEvery is how often the benchmark looks.
const pollEvery = 20 * time.Millisecond

// awaitCard waits until a sorted set is of that size.
func (f *fleet) awaitCard(key string, n int64) error {
	for timing.Pause(f.ctx, pollEvery) {
		have, err := f.site.Redis.DB.ZCard(f.ctx, f.site.Key(key)).Result()
		if err != nil || have >= n {
			return err
		}
	}
	return context.Cause(f.ctx)
}

// measure gives the fleet each load in turn.
func (f *fleet) measure() error {
	for _, work := range f.o.work {
		l, err := f.load(work)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(f.progress, "tasks of %s: %.0f a second\n", work, l.rate())
		f.loads = append(f.loads, l)
	}
	return nil
}
