package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/bench/crew"
)

// form is another way to keep a waiting task, tried beside the one that there is.
type form struct {
	name string
	// put writes task n, of which hash is what the product keeps. prefix is that of the keys of this form.
	put func(ctx context.Context, p redis.Pipeliner, prefix string, n int, hash map[string]string)
}

// defaults are the values that a field which is missing could stand for, shared those that most tasks of a project have in common.
var (
	defaults = map[string]string{
		"start_after": "0", "end_before": "inf", "timeout": "inf", "round": "0", "fails": "0", "timeouts": "0", "log": "",
	}
	shared = []string{"program", "source", "namespace", "max_fails", "max_timeouts"}
)

func forms() []form {
	return []form{
		{"hash as it is", hashOf(func(map[string]string) {})},
		{"hash, fields at their defaults left out", hashOf(dropDefaults)},
		{"hash, definition shared (program, source, namespace, maxima)", hashOf(shareDefinition)},
		{"hash, both", hashOf(func(h map[string]string) { dropDefaults(h); shareDefinition(h) })},
		{"one text in the place of the hash, both", textOf},
		{"index as a sorted set, as it is", func(ctx context.Context, p redis.Pipeliner, prefix string, n int, hash map[string]string) {
			at, _ := strconv.ParseFloat(hash["0:open"], 64)
			p.ZAdd(ctx, prefix+"index", redis.Z{Score: at, Member: member(n)})
		}},
		{"index as a list", func(ctx context.Context, p redis.Pipeliner, prefix string, n int, _ map[string]string) {
			p.RPush(ctx, prefix+"index", member(n))
		}},
	}
}

func member(n int) string {
	text := strconv.Itoa(n)
	return string(rune('`'+len(text))) + text
}

func hashOf(change func(map[string]string)) func(context.Context, redis.Pipeliner, string, int, map[string]string) {
	return func(ctx context.Context, p redis.Pipeliner, prefix string, n int, hash map[string]string) {
		hash = maps.Clone(hash)
		hash["id"] = strconv.Itoa(n)
		change(hash)
		p.HSet(ctx, prefix+"task:"+strconv.Itoa(n), hash)
	}
}

func dropDefaults(h map[string]string) {
	maps.DeleteFunc(h, func(field, value string) bool {
		otherwise, known := defaults[field]
		return known && value == otherwise
	})
}

func shareDefinition(h map[string]string) {
	for _, field := range shared {
		delete(h, field)
	}
	h["definition"] = "12"
}

func textOf(ctx context.Context, p redis.Pipeliner, prefix string, n int, hash map[string]string) {
	hash = maps.Clone(hash)
	dropDefaults(hash)
	shareDefinition(hash)
	values := slices.Collect(maps.Values(hash))
	p.Set(ctx, prefix+"task:"+strconv.Itoa(n), strings.Join(values, "\x00"), 0)
}

// measureForms compares what each form takes a task, under the shipped settings, on a Redis of its own each: so the table of
// keys takes the same for all.
func measureForms(ctx context.Context, o options, progress io.Writer) (string, error) {
	var w strings.Builder
	fmt.Fprintf(&w, "Forms: bytes of Redis a task, %d tasks, shipped redis.conf\n\n| | bytes |\n|---|--:|\n", o.tasks)
	for _, f := range forms() {
		bytes, err := f.measure(ctx, o)
		if err != nil {
			return "", fmt.Errorf("%s: %w", f.name, err)
		}
		_, _ = fmt.Fprintf(progress, "%s: %.0f\n", f.name, bytes)
		fmt.Fprintf(&w, "| %s | %.0f |\n", f.name, bytes)
	}
	return w.String(), nil
}

func (f form) measure(ctx context.Context, o options) (bytes float64, err error) {
	s, err := crew.NewSite(ctx, o.conf)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Open(ctx, 1, o.spec()); err != nil {
		return 0, err
	}
	hash, err := s.Redis.DB.HGetAll(ctx, s.Key("task:1")).Result()
	if err != nil {
		return 0, err
	}
	before, err := s.Redis.Memory(ctx)
	if err != nil {
		return 0, err
	}
	if err := f.fill(ctx, s, o.tasks, hash); err != nil {
		return 0, err
	}
	after, err := s.Redis.Memory(ctx)
	return (after - before) / float64(o.tasks), err
}

// fill writes tasks, in batches.
func (f form) fill(ctx context.Context, s *crew.Site, tasks int, hash map[string]string) error {
	const batch = 1000
	for first := 1; first <= tasks; first += batch {
		_, err := s.Redis.DB.Pipelined(ctx, func(p redis.Pipeliner) error {
			for n := first; n < min(first+batch, tasks+1); n++ {
				f.put(ctx, p, "form:", n, hash)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("writing tasks: %w", err)
		}
	}
	return nil
}
