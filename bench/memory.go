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
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

const simulate = "simulate"

// What a task has: a source and an input of the usual length, and a short output.
const (
	sourceBytes = 80
	inputBytes  = 100
	outputBytes = 6
)

// longSpec is the task that is measured: all fields of the original.
func longSpec() task.Spec {
	return task.Spec{
		Program: simulate, Source: "https://" + strings.Repeat("s", sourceBytes-len("https://")), Input: strings.Repeat("i", inputBytes),
		MaxFails: new(3), MaxTimeouts: new(3),
	}
}

// finite is the same with both deadlines.
func finite(s task.Spec) task.Spec {
	s.EndBefore, s.Timeout = time.Unix(4102444800, 0), time.Hour
	return s
}

// lineHandler writes a short line, as a program does.
func lineHandler() map[string]worker.Handler {
	line := strings.Repeat("o", outputBytes-1) + "\n"
	return map[string]worker.Handler{simulate: func(_ context.Context, j *worker.Job) error {
		_, err := io.WriteString(j.Stdout, line)
		return err
	}}
}

// footprint is how many bytes Redis has allocated for a task.
type footprint struct {
	waiting, hash, open, ready, due float64 // while it waits, in all and where they lie
	archived                        float64
}

// memoryCase is one row of the table.
type memoryCase struct {
	name     string
	settings []string
	spec     task.Spec
}

func (b *bench) memoryCases() []memoryCase {
	plain := longSpec()
	return []memoryCase{
		{"shipped redis.conf", []string{b.conf}, plain},
		{"shipped redis.conf, finite end_before and timeout", []string{b.conf}, finite(plain)},
		{"defaults of Redis", nil, plain},
		{"defaults of Redis, finite end_before and timeout", nil, finite(plain)},
	}
}

// memory measures what waiting and archived tasks take, with the shipped redis.conf and with the defaults of Redis.
func (b *bench) memory(ctx context.Context) ([]Table, error) {
	var w strings.Builder
	var rows [][]string
	for _, c := range b.memoryCases() {
		f, err := b.footprint(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		b.say("%s: %.0f waiting, %.0f archived", c.name, f.waiting, f.archived)
		rows = append(rows, cells(c.name, 0, f.waiting, f.hash, f.open, f.ready, f.due, f.archived))
	}
	grid(&w, []string{"", "waiting", "of it hash and key", "`open`", "`ready:`", "`due`", "archived"}, rows...)
	return textTable("memory", &w, "Bytes of Redis a task, %d tasks, source of %d bytes, input of %d, output of %d",
		b.Tasks, sourceBytes, inputBytes, outputBytes), nil
}

func (b *bench) footprint(ctx context.Context, c memoryCase) (f footprint, err error) {
	s, err := site.New(ctx, c.settings...)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var used [3]site.Usage // with fill, with all waiting, with all archived
	all := b.fill + b.Tasks
	for i, step := range []func() error{
		func() error { return s.Open(ctx, b.fill, c.spec) },
		func() error { return s.Open(ctx, b.Tasks, c.spec) },
		func() error { return errors.Join(f.places(ctx, s, all), b.archiveAll(ctx, s, all)) },
	} {
		if err := step(); err != nil {
			return f, err
		}
		if used[i], err = s.Redis.Usage(ctx); err != nil {
			return f, err
		}
	}
	f.waiting = (used[1].Memory - used[0].Memory) / float64(b.Tasks)
	// The first tasks are archived too, and take the same.
	f.archived = (used[2].Memory - (used[0].Memory - f.waiting*float64(b.fill))) / float64(all)
	return f, nil
}

// places asks Redis where the bytes of waiting tasks lie.
func (f *footprint) places(ctx context.Context, s *site.Site, tasks int) error {
	for key, place := range map[string]*float64{"open": &f.open, "ready:default:::0": &f.ready, "due": &f.due} {
		bytes, err := usage(ctx, s, key)
		if err != nil {
			return err
		}
		*place = bytes / float64(tasks)
	}
	bytes, err := usage(ctx, s, fmt.Sprintf("task:%d", tasks))
	f.hash = bytes
	return err
}

func usage(ctx context.Context, s *site.Site, key string) (float64, error) {
	there, err := s.Redis.DB.Exists(ctx, s.Key(key)).Result()
	if err != nil || there == 0 {
		return 0, err
	}
	bytes, err := s.Redis.DB.MemoryUsage(ctx, s.Key(key), 0).Result()
	if err != nil {
		return 0, fmt.Errorf("MEMORY USAGE %s: %w", key, err)
	}
	return float64(bytes), nil
}

// archiveAll lets all tasks be run and archived.
func (b *bench) archiveAll(ctx context.Context, s *site.Site, n int) error {
	life, c, err := b.crew(ctx, s)
	if err != nil {
		return err
	}
	_, err = s.AwaitCard(life, string(statemachine.Archived), int64(n), pollEvery)
	return errors.Join(err, c.Stop())
}

// crew is a server, a worker and a manager.
func (b *bench) crew(ctx context.Context, s *site.Site) (context.Context, *site.Crew, error) {
	life, c := s.Gather(ctx)
	hand := site.Hand{Name: "worker", Slots: b.Slots, Handlers: lineHandler()}
	err := errors.Join(c.Server("server"), c.Worker(hand), c.Archiver("manager"))
	if err != nil {
		return ctx, nil, errors.Join(err, c.Stop())
	}
	return life, c, nil
}

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

func taskForms() []form {
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

// forms compares what each form takes a task, under the shipped settings, on a Redis of its own each: so the table of
// keys takes the same for all.
func (b *bench) forms(ctx context.Context) ([]Table, error) {
	var w strings.Builder
	var rows [][]string
	for _, f := range taskForms() {
		bytes, err := f.measure(ctx, b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		b.say("%s: %.0f", f.name, bytes)
		rows = append(rows, cells(f.name, 0, bytes))
	}
	grid(&w, []string{"", "bytes"}, rows...)
	return textTable("forms", &w, "Bytes of Redis a task, %d tasks, shipped redis.conf", b.Tasks), nil
}

func (f form) measure(ctx context.Context, b *bench) (bytes float64, err error) {
	s, err := site.New(ctx, b.conf)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Open(ctx, 1, longSpec()); err != nil {
		return 0, err
	}
	hash, err := s.Redis.DB.HGetAll(ctx, s.Key("task:1")).Result()
	if err != nil {
		return 0, err
	}
	before, err := s.Redis.Usage(ctx)
	if err != nil {
		return 0, err
	}
	if err := f.fill(ctx, s, b.Tasks, hash); err != nil {
		return 0, err
	}
	after, err := s.Redis.Usage(ctx)
	return (after.Memory - before.Memory) / float64(b.Tasks), err
}

// fill writes tasks, in batches.
func (f form) fill(ctx context.Context, s *site.Site, tasks int, hash map[string]string) error {
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
