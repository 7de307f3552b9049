package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

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
			t.queues[j.Input]++
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
