package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// reading is what one run of one contender has measured, by the name of the metric.
type reading map[string]float64

// contender is one system, in one configuration.
type contender struct {
	name string
	// ours says that this is TDF: without it there is nothing to compare.
	ours bool
	// absent says why it cannot take part here.
	absent string
	run    func(ctx context.Context) (reading, error)
}

// group are contenders that are measured in turns, and the tables that show what came out.
type group struct {
	contenders []*contender
	tables     []table
}

// selected leaves those whose names begin with one of the words, or all if there are none.
func selected(words []string, all []*contender) []*contender {
	if len(words) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(c *contender) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(c.name, word) })
	})
}

// missing is an error if a word names no contender of any group.
func missing(words []string, groups []group) error {
	for _, word := range words {
		if !slices.ContainsFunc(groups, func(g group) bool { return len(selected([]string{word}, slices.Clone(g.contenders))) > 0 }) {
			return fmt.Errorf("-contenders=%s: no contender of these tables has a name that begins with %q", strings.Join(words, ","), word)
		}
	}
	return nil
}

// rounds runs every contender once a round, one after the other: a machine that is busy for a while slows them alike.
// Each round begins with another one. A peer that fails is absent from then on; if TDF fails, that is an error.
func (b *bench) rounds(ctx context.Context, all []*contender) (map[string][]reading, error) {
	samples := map[string][]reading{}
	for round := range b.o.Rounds {
		for i := range all {
			c := all[(i+round)%len(all)]
			if c.absent != "" {
				continue
			}
			r, err := b.once(ctx, c)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil && c.ours {
				return nil, err
			}
			if err != nil {
				c.absent = "failed: " + firstLine(err)
				_, _ = fmt.Fprintf(b.progress, "%s: %v\n", c.name, err)
				continue
			}
			samples[c.name] = append(samples[c.name], r)
			_, _ = fmt.Fprintf(b.progress, "round %d: %s: %s\n", round+1, c.name, r)
		}
	}
	return samples, nil
}

func (b *bench) once(ctx context.Context, c *contender) (reading, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, b.o.runLimit, fmt.Errorf("-run-limit=%s is over", b.o.runLimit))
	defer cancel()
	r, err := c.run(ctx)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	return r, err
}

// String is a line of progress.
func (r reading) String() string {
	var words []string
	for _, m := range allMetrics() {
		if v, ok := r[m.name]; ok {
			words = append(words, m.format(v)+" "+m.title)
		}
	}
	return strings.Join(words, ", ")
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
