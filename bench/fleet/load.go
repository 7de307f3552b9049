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

	"github.com/tdf-go/tdf/bench/crew"
	"github.com/tdf-go/tdf/bench/stats"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

const program = "simulate"

// tally is who has done what in the row that is measured.
type tally struct {
	work  atomic.Int64 // how long a task takes
	tasks int64
	done  atomic.Int64
	each  []atomic.Int64 // by worker

	mu     sync.Mutex
	queues map[string]int // of the first half of the tasks
}

func newTally(o options) *tally {
	return &tally{tasks: int64(o.tasks), each: make([]atomic.Int64, o.workers)}
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
	tasks               int
	took                time.Duration
	redisCPU, ownCPU    float64 // seconds in all
	reads               float64
	perWorker, perQueue []float64
}

func (l *load) rate() float64 { return float64(l.tasks) / l.took.Seconds() }

// load opens the tasks of a row, in all queues in turn, and waits until they are archived.
func (f *fleet) load(work time.Duration) (l load, err error) {
	f.tally.begin(work)
	archived, err := f.site.Redis.DB.ZCard(f.ctx, f.site.Key("archived")).Result()
	if err != nil {
		return l, err
	}
	before, err := f.read()
	if err != nil {
		return l, err
	}
	if err := f.open(); err != nil {
		return l, err
	}
	if err := f.awaitCard("archived", archived+int64(f.o.tasks)); err != nil {
		return l, err
	}
	after, err := f.read()
	l = load{
		work: work, tasks: f.o.tasks, took: after.at.Sub(before.at),
		redisCPU: after.redis - before.redis, ownCPU: after.own - before.own, reads: after.reads - before.reads,
	}
	for i := range f.tally.each {
		l.perWorker = append(l.perWorker, float64(f.tally.each[i].Load()))
	}
	for i := range f.o.queues {
		l.perQueue = append(l.perQueue, float64(f.tally.queues[queueName(i)]))
	}
	return l, err
}

func (f *fleet) open() error {
	for first := 0; first < f.o.tasks; first += store.MaxOpen {
		specs := make([]task.Definition, min(store.MaxOpen, f.o.tasks-first))
		for i := range specs {
			queue := queueName((first + i) % f.o.queues)
			d, err := task.Define(&task.Spec{Program: program, Source: "rsync:/simulate", Input: queue, Queue: queue})
			if err != nil {
				return err
			}
			specs[i] = d
		}
		if _, err := f.site.Store.Open(f.ctx, store.OpenRequest{Key: store.NewToken(), Specs: specs}); err != nil {
			return fmt.Errorf("opening tasks: %w", err)
		}
	}
	return nil
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

// spread is lowest, median and highest.
func spread(shares []float64) string {
	return fmt.Sprintf("%.0f / %.0f / %.0f", slices.Min(shares), stats.Median(shares), slices.Max(shares))
}

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

// tables are Markdown.
func (f *fleet) tables() string {
	var w strings.Builder
	fmt.Fprintf(&w, "Fleet: %d workers of %d slots, %d servers, %d managers, %d queues; %s of delay each way; all registered after %.1f s\n\n",
		f.o.workers, f.o.slots, f.o.servers, f.o.managers, f.o.queues, f.o.delay, f.idle.startup.Seconds())
	fmt.Fprintf(&w, "| an idle worker | |\n|---|--:|\n| commands a second | %.2f |\n| Redis' processor time, µs a second | %.0f |\n"+
		"| its own, µs a second | %.0f |\n| memory of Redis, bytes | %.0f |\n| connections | %.1f |\n\n",
		f.idle.commands, 1e6*f.idle.redisCPU, 1e6*f.idle.ownCPU, f.idle.memory, f.idle.connections)
	fmt.Fprint(&w, "| a task takes | tasks a second | of what the slots could do | Redis' processor time, µs a task | of a core | "+
		"all others', µs a task | commands a task | tasks a worker: least / median / most | Jain's index | "+
		"of the first half, by queue: least / median / most | Jain's index |\n"+
		"|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, l := range f.loads {
		f.row(&w, &l)
	}
	return w.String()
}

func (f *fleet) row(w *strings.Builder, l *load) {
	could := "-"
	if l.work > 0 {
		could = fmt.Sprintf("%.0f %%", 100*l.rate()*l.work.Seconds()/float64(f.o.workers*f.o.slots))
	}
	n := float64(l.tasks)
	fmt.Fprintf(w, "| %s | %.0f | %s | %.0f | %.0f %% | %.0f | %.1f | %s | %.3f | %s | %.3f |\n", l.work, l.rate(), could,
		1e6*l.redisCPU/n, 100*l.redisCPU/l.took.Seconds(), 1e6*l.ownCPU/n, l.reads/n,
		spread(l.perWorker), jain(l.perWorker), spread(l.perQueue), jain(l.perQueue))
}
