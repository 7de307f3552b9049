package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf/bench/stats"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
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
		specs := make([]store.Spec, min(store.MaxOpen, f.o.tasks-first))
		for i := range specs {
			queue := queueName((first + i) % f.o.queues)
			specs[i] = store.Spec{
				Program: program, Source: "rsync:/simulate", Input: queue, StartAfter: "0", EndBefore: "inf", Timeout: "inf",
				MaxFails: "0", MaxTimeouts: "0", Bucket: store.Bucket{Queue: queue},
			}
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
