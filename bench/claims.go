package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/task"
)

// claimer is a namespace in which tasks are claimed one by one.
type claimer struct {
	*site.Site
	round int
}

// offer is what the claiming worker has: no label, a node, one gpu.
var offer = task.Offer{Worker: "w", Node: "n", Resources: task.Resources{"gpu": 1}, MaxThreads: task.NoLimit}

// few is how many tasks that fit nobody the reference has: one of each kind.
const few = 4

// claims compares a claim behind few and behind many tasks that fit nobody.
func (b *bench) claims(ctx context.Context) (_ []Table, err error) {
	var all []*contender
	for _, n := range []int{few, b.many} {
		on, err := site.New(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, on.Close()) }()
		c := &claimer{Site: on}
		if err := c.fill(ctx, n); err != nil {
			return nil, err
		}
		b.say("%d tasks wait", n)
		all = append(all, b.timed(fmt.Sprintf("behind %d that fit nobody", n), c.run))
	}
	return b.compare(ctx, all, comparison{
		Table: Table{
			Name: "claims", Title: fmt.Sprintf("Claims: %d a run, one at a time", b.Tasks), Metrics: []Metric{rate}, Reference: all[0].name,
		},
		ratios: []Metric{rate},
	})
}

// fill opens tasks that the worker may never claim: for a label that nobody has,
// for more than its node offers, and in a queue that is full.
func (c *claimer) fill(ctx context.Context, n int) error {
	full := task.NewQueue("full")
	full.Threads = 0
	if err := c.Store.AddQueue(ctx, full); err != nil {
		return err
	}
	kinds := []task.Spec{
		{Labels: []string{"disk=tape"}}, {Labels: []string{"disk=tape"}, Priority: new(9)},
		{Resources: task.Resources{"gpu": 2}}, {Queue: "full"},
	}
	for i, spec := range kinds {
		if err := c.Open(ctx, (n+i)/len(kinds), claimed(spec)); err != nil {
			return err
		}
	}
	return nil
}

func claimed(spec task.Spec) task.Spec {
	spec.Program, spec.Source = "p", "rsync:/p"
	return spec
}

// run opens tasks that fit, and claims them one by one; only that is timed.
func (c *claimer) run(ctx context.Context, count int) (time.Duration, error) {
	if err := c.Open(ctx, count, claimed(task.Spec{})); err != nil {
		return 0, err
	}
	rules, err := c.Store.Rules(ctx, offer.Node)
	if err != nil {
		return 0, err
	}
	turns := task.Candidates(rules.Buckets, rules.Queues, offer)
	start := time.Now()
	for range count {
		c.round++
		r, err := c.Store.Claim(ctx, tasks.ClaimRequest{
			Worker: offer.Worker, Node: offer.Node, Request: conn.NewToken(), Max: 1, Candidates: turns, First: c.round,
			Rules: rules.Version, Known: rules.Known, MaxThreads: offer.MaxThreads, Resources: offer.Resources,
		})
		if err != nil {
			return 0, err
		}
		if len(r.Tasks) != 1 || r.Tasks[0].Bucket != (task.Bucket{}) {
			return 0, fmt.Errorf("claimed %d tasks, stale %v", len(r.Tasks), r.Stale)
		}
	}
	return time.Since(start), nil
}
