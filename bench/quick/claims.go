package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/bench/contend"
	"github.com/tdf-go/tdf/bench/stats"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/task"
)

// claims is a namespace in which tasks are claimed one by one.
type claims struct {
	store *store.Store
	name  string
	round int
}

// offer is what the claiming worker has: no label, a node, one gpu.
var offer = task.Offer{Worker: "w", Node: "n", Resources: task.Resources{"gpu": 1}, MaxThreads: task.NoLimit}

// few is how many tasks that fit nobody the reference has: one of each kind.
const few = 4

// compareClaims writes what a claim costs behind few and behind many tasks that
// fit nobody.
func compareClaims(ctx context.Context, o options, out, progress io.Writer) error {
	var all []contend.Contender
	for _, n := range []int{few, o.waiting} {
		c, err := openClaims(o.redis, fmt.Sprintf("behind %d that fit nobody", n))
		if err != nil {
			return err
		}
		defer c.close()
		if err := c.fill(ctx, n, progress); err != nil {
			return err
		}
		all = append(all, contend.Contender{Name: c.name, Run: c.run})
	}
	samples, err := measure(ctx, o, all, progress)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, claimTable(o, all, samples))
	return err
}

func claimTable(o options, all []contend.Contender, samples [][]sample) string {
	var w strings.Builder
	fmt.Fprintf(&w, "Claims: %d a run, one at a time, %d interleaved rounds\n\n", o.tasks, o.rounds)
	fmt.Fprint(&w, "| | claims a second | lowest to highest | of the first |\n|---|--:|--:|--:|\n")
	for i, c := range all {
		fmt.Fprintf(&w, "%s %.2f |\n", leading(c.Name, rates(samples[i])), stats.Median(stats.Ratios(rates(samples[i]), rates(samples[0]))))
	}
	return w.String()
}

func openClaims(redis, name string) (*claims, error) {
	host, port, err := net.SplitHostPort(redis)
	if err != nil {
		return nil, fmt.Errorf("-redis=%s: %w", redis, err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("-redis=%s: %w", redis, err)
	}
	where := config.Redis{Host: host, Port: number, DialTimeout: time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute}
	s, err := store.Dial(where, "bench-"+store.NewToken())
	return &claims{store: s, name: name}, err
}

func (c *claims) close() { _ = c.store.Close() } // the Redis ends with the benchmark, or is the caller's for this

// fill opens tasks that the worker may never claim: for a label that nobody has,
// for more than its node offers, and in a queue that is full.
func (c *claims) fill(ctx context.Context, n int, progress io.Writer) error {
	full := task.NewQueue("full")
	full.Threads = 0
	if err := c.store.AddQueue(ctx, full); err != nil {
		return err
	}
	buckets := []store.Bucket{{Labels: "disk=tape"}, {Labels: "disk=tape", Priority: 9}, {Resources: "gpu=2"}, {Queue: "full"}}
	for i, b := range buckets {
		for left := (n + i) / len(buckets); left > 0; left -= store.MaxOpen {
			if err := c.open(ctx, min(store.MaxOpen, left), b); err != nil {
				return err
			}
		}
	}
	_, _ = fmt.Fprintf(progress, "%d tasks wait\n", n)
	return nil
}

func (c *claims) open(ctx context.Context, n int, b store.Bucket) error {
	spec := task.Spec{Program: "p", Source: "rsync:/p", Priority: &b.Priority}
	fields := b.Fields()
	for i := 0; i < len(fields); i += 2 {
		if err := spec.Set(fields[i], fields[i+1], time.Time{}); err != nil {
			return err
		}
	}
	d, err := task.Define(&spec)
	if err != nil {
		return err
	}
	_, err = c.store.Open(ctx, store.OpenRequest{Key: store.NewToken(), Specs: slices.Repeat([]task.Definition{d}, n)})
	return err
}

// run opens tasks that fit, and claims them one by one; only that is timed.
func (c *claims) run(ctx context.Context, tasks int) (time.Duration, error) {
	for left := tasks; left > 0; left -= store.MaxOpen {
		if err := c.open(ctx, min(store.MaxOpen, left), store.Bucket{}); err != nil {
			return 0, err
		}
	}
	rules, err := c.store.Rules(ctx, offer.Node)
	if err != nil {
		return 0, err
	}
	turns := task.Candidates(rules.Buckets, rules.Queues, offer)
	start := time.Now()
	for range tasks {
		c.round++
		r, err := c.store.Claim(ctx, store.ClaimRequest{
			Worker: offer.Worker, Node: offer.Node, Request: store.NewToken(), Max: 1, Candidates: turns, First: c.round,
			Rules: rules.Version, Known: rules.Known, MaxThreads: offer.MaxThreads, Resources: offer.Resources,
		})
		if err != nil {
			return 0, err
		}
		if len(r.Tasks) != 1 || r.Tasks[0].Bucket != (store.Bucket{}) {
			return 0, fmt.Errorf("%s: claimed %d tasks, stale %v", c.name, len(r.Tasks), r.Stale)
		}
	}
	return time.Since(start), nil
}
