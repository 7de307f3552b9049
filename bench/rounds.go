package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/bench/site"
)

// reading has the values of one run of one contender, by metric.
type reading map[string]float64

// String is a line of progress.
func (r reading) String() string {
	var words []string
	for _, m := range metrics {
		if v, ok := r[m.Name]; ok {
			words = append(words, m.format(v)+" "+m.Title)
		}
	}
	return strings.Join(words, ", ")
}

// contender is one system, in one configuration.
type contender struct {
	name string
	// peer says that this is not TDF: if it fails, it is absent and the others go on.
	peer bool
	// absent is why it cannot take part.
	absent string
	run    func(ctx context.Context) (reading, error)
}

// contenderNames are the beginnings of all names of contenders.
var contenderNames = []string{
	tdfName, "xargs", "GNU parallel", spawnName, plainName, uncontainedName, "shim", asynqName, bullName, celeryName,
	"behind", flatName, planName, "installed", "packed", "put", "opened", "done", "GET",
}

// selected returns the contenders whose names begin with one of the words; without words, all of them.
func selected(words []string, all []*contender) []*contender {
	if len(words) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(c *contender) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(c.name, word) })
	})
}

// mayWant reports whether -contenders may select a contender whose name begins with name.
func (o *options) mayWant(name string) bool {
	return len(o.contenders) == 0 || slices.ContainsFunc(o.contenders, func(word string) bool { return fits(name, word) })
}

// fits reports whether one begins with the other.
func fits(name, word string) bool {
	return strings.HasPrefix(name, word) || strings.HasPrefix(word, name)
}

// compare runs contenders in rounds and makes tables of the samples.
func (b *bench) compare(ctx context.Context, all []*contender, tables ...comparison) (out []Table, err error) {
	if all = selected(b.contenders, all); len(all) == 0 {
		return nil, errors.New("no contender is left")
	}
	samples, err := b.rounds(ctx, all)
	if err != nil {
		return nil, err
	}
	var missed []error
	for _, t := range tables {
		t.Title += fmt.Sprintf("; %d interleaved rounds", b.Rounds)
		t.fill(all, samples)
		out = append(out, t.Table)
		if b.strict {
			missed = append(missed, t.missed()...)
		}
	}
	return out, errors.Join(missed...)
}

// rounds runs every contender once a round, in turn: a machine that is busy for a while slows them alike. Each round starts
// with the next contender.
func (b *bench) rounds(ctx context.Context, all []*contender) (map[string][]reading, error) {
	samples := map[string][]reading{}
	for round := range b.Rounds {
		for i := range all {
			c := all[(i+round)%len(all)]
			if c.absent != "" {
				continue
			}
			r, err := b.once(ctx, c)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil && !c.peer {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			if err != nil {
				c.absent = "failed: " + firstLine(err)
				b.say("%s: %v", c.name, err)
				continue
			}
			samples[c.name] = append(samples[c.name], r)
			b.say("round %d: %s: %s", round+1, c.name, r)
		}
	}
	return samples, nil
}

func (b *bench) once(ctx context.Context, c *contender) (reading, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.runLimit, fmt.Errorf("-run-limit=%s is over", b.runLimit))
	defer cancel()
	r, err := c.run(ctx)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	return r, err
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// withRedis runs do with a private redis-server.
func withRedis(ctx context.Context, do func(srv *site.Redis) error) error {
	srv, err := site.StartRedis(ctx)
	if err != nil {
		return err
	}
	defer srv.Stop()
	return do(srv)
}

// timed makes a contender of a function that runs n tasks and returns how long they took.
func (b *bench) timed(name string, run func(ctx context.Context, n int) (time.Duration, error)) *contender {
	return &contender{name: name, run: func(ctx context.Context) (reading, error) {
		before := site.ProcessorTime()
		took, err := run(ctx, b.Tasks)
		if err != nil {
			return nil, err
		}
		used, n := site.ProcessorTime()-before, float64(b.Tasks)
		return reading{rate.Name: n / took.Seconds(), cpuMillis.Name: used.Seconds() * 1000 / n}, nil
	}}
}
