package main

import (
	"cmp"
	"context"
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
func (b *bench) fleet(ctx context.Context) (tables []Table, err error) {
	if err := raiseFiles(b.files()); err != nil {
		return nil, err
	}
	f := &fleetRun{bench: b, tally: newTally(b)}
	if err := f.run(ctx); err != nil {
		return nil, err
	}
	return f.table(), nil
}

// fleetRun is all that takes part.
type fleetRun struct {
	*bench
	site   *site.Site
	crew   *site.Crew
	socket string // where workers find Redis
	tally  *tally
	// idleWorker is what one costs that has nothing to do, a second; startup how long it took until all were registered.
	idleWorker site.Usage
	startup    time.Duration
	loads      []load
}

// run starts the daemons, and gives the fleet each load in turn.
func (f *fleetRun) run(ctx context.Context) error {
	clients := strconv.Itoa(f.connections())
	return site.With(ctx, func(s *site.Site) error {
		f.site, f.socket = s, s.Redis.Socket()
		if f.delay > 0 {
			line, err := newLine(ctx, f.socket, f.delay)
			if err != nil {
				return err
			}
			defer line.close()
			f.socket = line.socket
		}
		return s.Run(ctx, func(ctx context.Context, c *site.Crew) error {
			f.crew = c
			if err := f.start(ctx); err != nil {
				return err
			}
			for _, work := range f.work {
				l, err := f.load(ctx, work)
				if err != nil {
					return err
				}
				f.say("tasks of %s: %.0f a second", work, l.rate())
				f.loads = append(f.loads, l)
			}
			return nil
		})
	}, f.conf, "--maxclients", clients, "--tcp-backlog", "4096", "--appendonly", cmp.Or(f.aof, "no"))
}

// start makes the queues, and starts all but the workers, then those.
func (f *fleetRun) start(ctx context.Context) error {
	for i := range f.queues {
		if err := f.site.Store.AddQueue(ctx, task.NewQueue(queueName(i))); err != nil {
			return fmt.Errorf("making a queue: %w", err)
		}
	}
	if err := f.crew.Servers(f.servers); err != nil {
		return err
	}
	for i := range f.managers {
		if err := f.crew.Archiver(fmt.Sprint("manager-", i)); err != nil {
			return err
		}
	}
	return f.idleCost(ctx)
}

func queueName(i int) string { return fmt.Sprint("queue-", i) }

// together is how many workers begin at a time.
const together = 100

// startWorkers starts all workers, some at a time, and waits until they are registered.
func (f *fleetRun) startWorkers(ctx context.Context) error {
	for i := range f.Workers {
		h := site.Hand{
			Name: fmt.Sprint("worker-", i), Slots: f.Slots, Socket: f.socket, Pool: workerPool,
			Handlers: map[string]worker.Handler{simulate: f.tally.handler(i)},
		}
		if err := f.crew.Worker(h); err != nil {
			return err
		}
		if n := i + 1; n%together == 0 || n == f.Workers {
			if _, err := f.site.AwaitCard(ctx, "lease", int64(n), pollEvery); err != nil {
				return err
			}
		}
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
