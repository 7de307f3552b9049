package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/bench/site"
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
	err = c.b.crew(ctx, c.Site, func(ctx context.Context) error {
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
