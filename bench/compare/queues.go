package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
)

// The names of contenders in the tables of queues.
const (
	tdfName     = "TDF"
	bullName    = "BullMQ"
	asynqName   = "asynq"
	celeryName  = "Celery"
	faktoryName = "Faktory"
)

// queues are the contenders that call functions.
func (b *bench) queues(ctx context.Context) (all []group) {
	var peers []*peer
	for _, p := range []struct {
		name string
		find func(context.Context) *peer
	}{{asynqName, b.asynq}, {bullName, b.bullmq}, {celeryName, b.celery}} {
		if b.o.mayWant(p.name) {
			peers = append(peers, p.find(ctx))
		}
	}
	if b.o.wants(handlersTable, openingTable) {
		all = append(all, b.lives(peers))
	}
	if b.o.wants(latencyTable) {
		all = append(all, b.latencies(peers))
	}
	return all
}

// faktory takes no part anywhere yet.
func faktory() *contender {
	return &contender{
		name: faktoryName, absent: "bench/peers has no program for it: its Go modules could not be had from the module proxy",
	}
}

// lives are whole lives of tasks with handlers that do nothing.
func (b *bench) lives(peers []*peer) group {
	ours := &contender{name: tdfName, ours: true, run: b.tdfLife}
	g := group{contenders: []*contender{ours}}
	for _, p := range peers {
		g.contenders = append(g.contenders, p.life(b))
	}
	g.contenders = append(g.contenders, faktory())
	handlers := table{
		name: handlersTable,
		title: fmt.Sprintf("Handlers that do nothing: %d tasks a run, opened, then processed, in one process; TDF: %d x %d slots, to archived",
			b.o.Handlers, b.o.Workers, b.o.WorkerSlots),
		metrics: []metric{rate, processed, redisCPU}, ratios: []metric{rate, processed},
		reference: asynqName, targets: handlerTargets(),
	}
	opening := table{
		name:    openingTable,
		title:   "Opening those tasks: TDF and BullMQ in batches by one caller, asynq by ten callers, Celery by one",
		metrics: []metric{opened}, ratios: []metric{opened}, reference: asynqName, targets: openingTargets(),
	}
	for _, t := range []table{handlers, opening} {
		if b.o.wants(t.name) {
			g.tables = append(g.tables, t)
		}
	}
	return g
}

// latencies are how long tasks wait for idle handlers.
func (b *bench) latencies(peers []*peer) group {
	g := group{contenders: []*contender{{name: tdfName, ours: true, run: b.tdfLatency}}}
	for _, p := range peers {
		g.contenders = append(g.contenders, p.latency(b, p.name))
		if p.name == asynqName {
			g.contenders = append(g.contenders, p.latency(b, asynqName+", check interval 10 ms", "-check-interval", "10ms"))
		}
	}
	g.contenders = append(g.contenders, faktory())
	g.tables = []table{{
		name: latencyTable,
		title: fmt.Sprintf("From just before a task is opened to the start of its handler: %d tasks a run, %d a second, the fleet idle",
			b.o.Latencies, b.o.Rate),
		metrics: []metric{p50, p99}, ratios: []metric{p50, p99}, reference: bullName, targets: latencyTargets(),
	}}
	return g
}

// warm is how many tasks go before those that are measured.
func warm(n int) int { return max(1, n/20) }

// percentiles turns latencies in milliseconds into a reading.
func percentiles(ms []float64) reading {
	sorted := slices.Sorted(slices.Values(ms))
	at := func(part float64) float64 { return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))] }
	return reading{p50.name: at(0.5), p99.name: at(0.99)}
}

// lifeReading turns seconds into a reading.
func lifeReading(n int, opening, processing, redis float64) reading {
	tasks := float64(n)
	return reading{
		rate.name: tasks / (opening + processing), processed.name: tasks / processing, opened.name: tasks / opening,
		redisCPU.name: redis * 1e6 / float64(n+warm(n)),
	}
}

func arg(n int) string { return strconv.Itoa(n) }
