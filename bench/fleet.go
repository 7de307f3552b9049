package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// fleet runs very many workers against one Redis: real clients (package worker) with Go handlers that only take time, in one
// process, so that hosts and programs are no part of it.
func (b *bench) fleet(ctx context.Context) ([]Table, error) {
	if err := raiseFiles(b.files()); err != nil {
		return nil, err
	}
	f, err := b.startFleet(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.measure(), f.close()); err != nil {
		return nil, err
	}
	return f.table(), nil
}

// fleetRun is all that takes part.
type fleetRun struct {
	*bench
	site  *site.Site
	crew  *site.Crew
	ctx   context.Context //nolint:containedctx // the life of the crew
	line  *line           // nil without a delay
	tally *tally
	// idleWorker is what one costs that has nothing to do, a second; startup how long it took until all were registered.
	idleWorker site.Usage
	startup    time.Duration
	loads      []load
}

// startFleet starts the daemons.
func (b *bench) startFleet(ctx context.Context) (*fleetRun, error) {
	clients := strconv.Itoa(b.connections())
	on, err := site.New(ctx, b.conf, "--maxclients", clients, "--tcp-backlog", "4096", "--appendonly", cmp.Or(b.aof, "no"))
	if err != nil {
		return nil, err
	}
	f := &fleetRun{bench: b, site: on, tally: newTally(b)}
	f.ctx, f.crew = on.Gather(ctx)
	if err := f.start(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *fleetRun) close() error {
	err := f.crew.Stop()
	if f.line != nil {
		f.line.close()
	}
	return errors.Join(err, f.site.Close())
}

func (f *fleetRun) start() error {
	for i := range f.queues {
		if err := f.site.Store.AddQueue(f.ctx, task.NewQueue(queueName(i))); err != nil {
			return fmt.Errorf("making a queue: %w", err)
		}
	}
	for i := range f.servers {
		if err := f.crew.Server(fmt.Sprint("server-", i)); err != nil {
			return err
		}
	}
	for i := range f.managers {
		if err := f.crew.Archiver(fmt.Sprint("manager-", i)); err != nil {
			return err
		}
	}
	if f.delay > 0 {
		var err error
		if f.line, err = newLine(f.ctx, f.site.Redis.Socket(), f.delay); err != nil {
			return err
		}
	}
	return f.idleCost()
}

func queueName(i int) string { return fmt.Sprint("queue-", i) }

// together is how many workers begin at a time.
const together = 100

// startWorkers starts all workers, some at a time, and waits until they are registered.
func (f *fleetRun) startWorkers() error {
	for i := range f.Workers {
		h := site.Hand{
			Name: fmt.Sprint("worker-", i), Slots: f.Slots, Pool: workerPool,
			Handlers: map[string]worker.Handler{simulate: f.tally.handler(i)},
		}
		if f.line != nil {
			h.Socket = f.line.socket
		}
		if err := f.crew.Worker(h); err != nil {
			return err
		}
		if n := i + 1; n%together == 0 || n == f.Workers {
			if _, err := f.site.AwaitCard(f.ctx, "lease", int64(n), pollEvery); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure gives the fleet each load in turn.
func (f *fleetRun) measure() error {
	for _, work := range f.work {
		l, err := f.load(work)
		if err != nil {
			return err
		}
		f.say("tasks of %s: %.0f a second", work, l.rate())
		f.loads = append(f.loads, l)
	}
	return nil
}

// How many connections there may be: a worker's pool and what it has beside that, and those of all others.
const (
	workerPool  = 4
	workerFiles = workerPool + 5
	otherFiles  = 500
)

// connections is how many Redis must bear.
func (b *bench) connections() int { return b.Workers*workerFiles + otherFiles }

// files is how many this process needs: a connection that is passed on with a delay has three ends here.
func (b *bench) files() uint64 {
	if b.delay > 0 {
		return 3 * uint64(b.connections())
	}
	return uint64(b.connections())
}

// raiseFiles raises the limit of open files, which redis-server inherits, to at least need.
func raiseFiles(need uint64) error {
	var have unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &have); err != nil {
		return fmt.Errorf("reading the limit of open files: %w", err)
	}
	if have.Cur >= need {
		return nil
	}
	want := unix.Rlimit{Cur: need, Max: max(have.Max, need)}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &want); err != nil {
		return fmt.Errorf("%d open files are needed, %d allowed (%w): raise ulimit -n, or take fewer -workers", need, have.Max, err)
	}
	return nil
}
