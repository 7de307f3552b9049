package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/task"
)

// crowd is a site with waiting tasks.
type crowd struct {
	*site.Site
	b       *bench
	waiting int
}

// scale runs some of the tasks of each crowd in turn. The tasks that wait are those that run.
func (b *bench) scale(ctx context.Context) (_ []Table, err error) {
	if b.few > b.many {
		return nil, fmt.Errorf("-few=%d: more than -many=%d", b.few, b.many)
	}
	var all []*contender
	for _, n := range []int{b.few, b.many} {
		s, err := site.New(ctx, b.conf, "--appendonly", "no")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		if err := s.Open(ctx, n, longSpec()); err != nil {
			return nil, err
		}
		b.say("%d tasks wait", n)
		all = append(all, &contender{name: fmt.Sprintf("behind %d that wait", n), run: (&crowd{s, b, n}).run})
	}
	return b.compare(ctx, all, comparison{
		Table: Table{
			Name: "scale", Title: fmt.Sprintf("Claimed to archived, Go handlers, a worker of %d slots, %d tasks a round", b.Slots, b.Tasks),
			Metrics: []Metric{micros, redisCPU}, Reference: all[0].name,
		},
		ratios: []Metric{micros, redisCPU},
	})
}

// run lets a crew, once it is at work, archive a slice, and opens as many tasks anew.
func (c *crowd) run(ctx context.Context) (r reading, err error) {
	before, err := c.Card(ctx, "archived")
	if err != nil {
		return nil, err
	}
	err = c.b.withDaemons(ctx, c.Site, func(ctx context.Context) error {
		r, err = c.watch(ctx, before, int64(c.b.Tasks))
		return err
	})
	if err != nil {
		return nil, err
	}
	waiting, err := c.Card(ctx, "open")
	if err != nil || int(waiting) >= c.waiting {
		return r, err
	}
	return r, c.Open(ctx, c.waiting-int(waiting), longSpec())
}

// crewStart is the part of a slice after which the clock starts: the crew has begun by then.
const crewStart = 10

// pollOften is how often it looks: its slices are short.
const pollOften = 5 * time.Millisecond

func (c *crowd) watch(ctx context.Context, before, slice int64) (reading, error) {
	first, err := c.AwaitCard(ctx, "archived", before+slice/crewStart, pollOften)
	if err != nil {
		return nil, err
	}
	began, err := c.Redis.Usage(ctx)
	if err != nil {
		return nil, err
	}
	last, err := c.AwaitCard(ctx, "archived", first+slice, pollOften)
	if err != nil {
		return nil, err
	}
	ended, err := c.Redis.Usage(ctx)
	each := 1e6 / float64(last-first)
	return reading{micros.Name: ended.At.Sub(began.At).Seconds() * each, redisCPU.Name: ended.Since(began).Redis * each}, err
}

// quiet watches a server with few and with many tasks that begin much later.
func (b *bench) quiet(ctx context.Context) ([]Table, error) {
	var w strings.Builder
	var rows [][]string
	spec := finite(longSpec())
	spec.StartAfter = time.Unix(4000000000, 0)
	err := site.With(ctx, func(s *site.Site) error {
		open := 0
		for _, n := range []int{b.few, b.many} {
			if err := s.Open(ctx, n-open, spec); err != nil {
				return err
			}
			open = n
			alone, err := s.Redis.Rest(ctx, 0, b.watch/2)
			if err != nil {
				return err
			}
			var r site.Usage
			err = s.Run(ctx, func(ctx context.Context, c *site.Crew) error {
				if err := c.Servers(1); err != nil {
					return err
				}
				r, err = s.Redis.Rest(ctx, b.settle, b.watch)
				return err
			})
			if err != nil {
				return err
			}
			b.say("%d: server %.4f, Redis %.4f", n, r.Own, r.Redis)
			rows = append(rows, []string{strconv.Itoa(n), percent(r.Own), percent(r.Redis), percent(alone.Redis)})
		}
		return nil
	}, b.conf, "--appendonly", "no")
	if err != nil {
		return nil, err
	}
	grid(&w, []string{"tasks that wait", "server", "Redis", "Redis without a server"}, rows...)
	return textTable("quiet", &w, "A server with nothing due, watched for %s; processor time as a share of a core", b.watch), nil
}

func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }

// claimer is a namespace in which tasks are claimed one by one.
type claimer struct {
	*site.Site
	round int
}

// offer is what the claiming worker has: no label, a node, one gpu.
var offer = task.Offer{Worker: "w", Node: "n", Resources: task.Resources{"gpu": 1}, MaxThreads: task.Unlimited}

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
	full := task.ParseQueue("full", nil)
	full.Threads = task.AtMost(0)
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
