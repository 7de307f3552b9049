package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/internal/base/timing"
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
		q := task.ParseQueue(queueName(i), nil)
		if err := errors.Join(q.Set("class", site.Class), f.site.Store.AddQueue(ctx, q)); err != nil {
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

// tally is who has done what in the row that is measured.
type tally struct {
	work  atomic.Int64 // how long a task takes
	tasks int64
	done  atomic.Int64
	each  []atomic.Int64 // by worker

	mu     sync.Mutex
	queues map[string]int // of the first half of the tasks
}

func newTally(b *bench) *tally {
	return &tally{tasks: int64(b.Tasks), each: make([]atomic.Int64, b.Workers)}
}

func (t *tally) begin(work time.Duration) {
	t.work.Store(int64(work))
	t.done.Store(0)
	for i := range t.each {
		t.each[i].Store(0)
	}
	t.queues = map[string]int{}
}

// handler is that of one worker: it takes its time.
func (t *tally) handler(i int) worker.Handler {
	return func(ctx context.Context, j *worker.Job) error {
		t.each[i].Add(1)
		if t.done.Add(1) <= t.tasks/2 {
			t.mu.Lock()
			t.queues[j.Task.Input]++
			t.mu.Unlock()
		}
		if work := time.Duration(t.work.Load()); work > 0 && !timing.Pause(ctx, work/2+rand.N(work)) {
			return context.Cause(ctx)
		}
		return nil
	}
}

// load is one row: what became of the tasks.
type load struct {
	work                time.Duration
	took                time.Duration
	used                site.Usage
	tasks               float64
	perWorker, perQueue []float64
}

func (l *load) rate() float64 { return l.tasks / l.took.Seconds() }

// load opens the tasks of a row and waits until they are archived.
func (f *fleetRun) load(ctx context.Context, work time.Duration) (l load, err error) {
	f.tally.begin(work)
	archived, err := f.site.Card(ctx, "archived")
	if err != nil {
		return l, err
	}
	before, err := f.site.Redis.Usage(ctx)
	if err != nil {
		return l, err
	}
	var specs []task.Spec // in all queues in turn
	for i := range f.queues {
		specs = append(specs, task.Spec{Program: simulate, Source: "rsync:/simulate", Input: queueName(i), Queue: queueName(i)})
	}
	if err := f.site.Open(ctx, f.Tasks, specs...); err != nil {
		return l, err
	}
	if _, err := f.site.AwaitCard(ctx, "archived", archived+int64(f.Tasks), pollEvery); err != nil {
		return l, err
	}
	after, err := f.site.Redis.Usage(ctx)
	l = load{work: work, tasks: float64(f.Tasks), took: after.At.Sub(before.At), used: after.Since(before)}
	for i := range f.tally.each {
		l.perWorker = append(l.perWorker, float64(f.tally.each[i].Load()))
	}
	for i := range f.queues {
		l.perQueue = append(l.perQueue, float64(f.tally.queues[queueName(i)]))
	}
	return l, err
}

// jain is Jain's index of fairness: 1 if all have the same, 1/n if one has all.
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += s
		squares += s * s
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// shares are lowest, median and highest, and Jain's index.
func shares(each []float64) []string {
	return []string{fmt.Sprintf("%.0f / %.0f / %.0f", slices.Min(each), median(each), slices.Max(each)), fmt.Sprintf("%.3f", jain(each))}
}

// idleCost compares the others alone with the others and all workers.
func (f *fleetRun) idleCost(ctx context.Context) error {
	alone, err := f.site.Redis.Rest(ctx, f.settle, f.watch)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := f.startWorkers(ctx); err != nil {
		return err
	}
	f.startup = time.Since(began)
	f.say("%d workers after %.1f s", f.Workers, f.startup.Seconds())
	all, err := f.site.Redis.Rest(ctx, f.settle, f.watch)
	n := float64(f.Workers)
	f.idleWorker = site.Usage{
		Reads: (all.Reads - alone.Reads) / n, Redis: (all.Redis - alone.Redis) / n, Own: (all.Own - alone.Own) / n,
		Memory: (all.Memory - alone.Memory) / n, Clients: (all.Clients - alone.Clients) / n,
	}
	return err
}

func (f *fleetRun) table() []Table {
	var w strings.Builder
	i := &f.idleWorker
	grid(&w, []string{"an idle worker", ""},
		cells("commands a second", 2, i.Reads), cells("Redis' processor time, µs a second", 0, 1e6*i.Redis),
		cells("its own, µs a second", 0, 1e6*i.Own), cells("memory of Redis, bytes", 0, i.Memory), cells("connections", 1, i.Clients))
	rows := make([][]string, 0, len(f.loads))
	for _, l := range f.loads {
		rows = append(rows, f.row(&l))
	}
	fmt.Fprintln(&w)
	grid(&w, []string{
		"a task takes", "tasks a second", "of what the slots could do", "Redis' processor time, µs a task", "of a core", "all others', µs a task",
		"commands a task", "tasks a worker: least / median / most", "Jain's index",
		"of the first half, by queue: least / median / most", "Jain's index",
	}, rows...)
	return textTable("fleet", &w,
		"%d workers of %d slots, %d servers, %d managers, %d queues; %s of delay each way; all registered after %.1f s",
		f.Workers, f.Slots, f.servers, f.managers, f.queues, f.delay, f.startup.Seconds())
}

func (f *fleetRun) row(l *load) []string {
	could := "-"
	if l.work > 0 {
		could = fmt.Sprintf("%.0f %%", 100*l.rate()*l.work.Seconds()/float64(f.Workers*f.Slots))
	}
	row := []string{
		l.work.String(), fmt.Sprintf("%.0f", l.rate()), could, fmt.Sprintf("%.0f", 1e6*l.used.Redis/l.tasks),
		fmt.Sprintf("%.0f %%", 100*l.used.Redis/l.took.Seconds()), fmt.Sprintf("%.0f", 1e6*l.used.Own/l.tasks),
		fmt.Sprintf("%.1f", l.used.Reads/l.tasks),
	}
	return append(append(row, shares(l.perWorker)...), shares(l.perQueue)...)
}
