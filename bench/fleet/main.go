// Command fleet runs very many workers against one Redis: real clients (package worker) with Go handlers that only take time,
// in one process, so that hosts and programs are no part of it. It measures what an idle worker costs Redis, how many
// tasks a second the fleet does, what a task costs Redis then, and whether workers and queues get equal shares. The
// tables are Markdown; bench/README.md says how to read them, docs/SCALING.md what follows.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/bench/crew"
	"github.com/tdf-go/tdf/bench/frame"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

func main() { frame.Main("fleet", run) }

// run measures and writes the tables to out and its progress to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	if err := raiseFiles(o.files()); err != nil {
		return err
	}
	return frame.Within(ctx, o.limit, func(ctx context.Context) error {
		f, err := gather(ctx, o, progress)
		if err != nil {
			return err
		}
		if err := errors.Join(f.measure(), f.close()); err != nil {
			return err
		}
		_, err = io.WriteString(out, f.tables())
		return err
	})
}

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
		if err := f.site.Store.AddQueue(f.ctx, task.NewQueue(queueName(i))); err != nil {
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

// options say what to measure.
type options struct {
	conf                                             string
	workers, slots, servers, managers, queues, tasks int
	work                                             []time.Duration
	delay, settle, watch, limit                      time.Duration
	aof                                              bool
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	var work string
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&o.conf, "conf", "configs/redis.conf", "the redis.conf")
	flags.BoolVar(&o.aof, "aof", false, "keep the append-only file that it asks for")
	flags.IntVar(&o.workers, "workers", 1000, "workers")
	flags.IntVar(&o.slots, "slots", 1, "slots of a worker")
	flags.IntVar(&o.servers, "servers", 1, "servers")
	flags.IntVar(&o.managers, "managers", 1, "managers that archive")
	flags.IntVar(&o.queues, "queues", 4, "queues, each with as many tasks")
	flags.IntVar(&o.tasks, "tasks", 20_000, "tasks of each row")
	flags.StringVar(&work, "work", "0s,500ms", "how long a task takes, on average (half as long to half as long again); a row for each")
	flags.DurationVar(&o.delay, "delay", 0, "how long what a worker sends, and what it is answered, is under way")
	flags.DurationVar(&o.settle, "settle", 40*time.Second, "how long to wait until the idle fleet has come to rest")
	flags.DurationVar(&o.watch, "watch", 20*time.Second, "how long to watch it then")
	flags.DurationVar(&o.limit, "limit", 30*time.Minute, "when to give up")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for text := range strings.SplitSeq(work, ",") {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return o, fmt.Errorf("-work=%s: %q is no time: write 500ms or 0s,1s", work, text)
		}
		o.work = append(o.work, d)
	}
	return o, o.check()
}

func (o *options) check() error {
	err := frame.AtLeastOne(map[string]int{
		"workers": o.workers, "slots": o.slots, "servers": o.servers, "managers": o.managers, "queues": o.queues, "tasks": o.tasks,
	})
	if err != nil {
		return err
	}
	if o.delay < 0 || o.watch <= 0 {
		return fmt.Errorf("-delay=%s -watch=%s: must not be negative, and -watch not 0", o.delay, o.watch)
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
func (o *options) connections() uint64 { return uint64(o.workers*workerFiles + otherFiles) }

// files is how many this process needs: a connection that is passed on with a delay has three ends here.
func (o *options) files() uint64 {
	if o.delay > 0 {
		return 3 * o.connections()
	}
	return o.connections()
}

// raiseFiles makes room for so many files here, and by inheritance in Redis.
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
