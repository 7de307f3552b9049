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

	"github.com/tdf-go/tdf/bench/crew"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

const program = "simulate"

// spec is the task that is measured: all fields of the original, with a source and an input of the usual length.
func (o *options) spec() task.Spec {
	return task.Spec{
		Program: program, Source: "https://" + strings.Repeat("s", o.sourceBytes-len("https://")), Input: strings.Repeat("i", o.inputBytes),
		MaxFails: new(3), MaxTimeouts: new(3),
	}
}

// finite is the same with both deadlines.
func finite(s task.Spec) task.Spec {
	s.EndBefore, s.Timeout = time.Unix(4102444800, 0), time.Hour
	return s
}

// handlers are those of all workers here: each writes a short line, as a program does.
func (o *options) handlers() map[string]worker.Handler {
	line := strings.Repeat("o", o.outputSize-1) + "\n"
	return map[string]worker.Handler{program: func(_ context.Context, j *worker.Job) error {
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

func (o *options) memoryCases() []memoryCase {
	plain := o.spec()
	return []memoryCase{
		{"shipped redis.conf", []string{o.conf}, plain},
		{"shipped redis.conf, finite end_before and timeout", []string{o.conf}, finite(plain)},
		{"defaults of Redis", nil, plain},
		{"defaults of Redis, finite end_before and timeout", nil, finite(plain)},
	}
}

func measureMemory(ctx context.Context, o options, progress io.Writer) (string, error) {
	var w strings.Builder
	fmt.Fprintf(&w, "Memory: bytes of Redis a task, %d tasks, source of %d bytes, input of %d, output of %d\n\n",
		o.tasks, o.sourceBytes, o.inputBytes, o.outputSize)
	fmt.Fprint(&w, "| | waiting | of it hash and key | `open` | `ready:` | `due` | archived |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, c := range o.memoryCases() {
		f, err := o.footprint(ctx, c)
		if err != nil {
			return "", fmt.Errorf("%s: %w", c.name, err)
		}
		_, _ = fmt.Fprintf(progress, "%s: %.0f waiting, %.0f archived\n", c.name, f.waiting, f.archived)
		fmt.Fprintf(&w, "| %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f |\n", c.name, f.waiting, f.hash, f.open, f.ready, f.due, f.archived)
	}
	return w.String(), nil
}

func (o *options) footprint(ctx context.Context, c memoryCase) (f footprint, err error) {
	s, err := crew.NewSite(ctx, c.settings...)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Open(ctx, o.fill, c.spec); err != nil {
		return f, err
	}
	empty, err := s.Redis.Memory(ctx)
	if err != nil {
		return f, err
	}
	if err := s.Open(ctx, o.tasks, c.spec); err != nil {
		return f, err
	}
	full, err := s.Redis.Memory(ctx)
	if err != nil {
		return f, err
	}
	f.waiting = (full - empty) / float64(o.tasks)
	if err := f.places(ctx, s, o.fill+o.tasks); err != nil {
		return f, err
	}
	if err := o.archiveAll(ctx, s, o.fill+o.tasks); err != nil {
		return f, err
	}
	// The first tasks are archived too, and take the same.
	after, err := s.Redis.Memory(ctx)
	f.archived = (after - (empty - f.waiting*float64(o.fill))) / float64(o.fill+o.tasks)
	return f, err
}

// places asks Redis where the bytes of waiting tasks lie.
func (f *footprint) places(ctx context.Context, s *crew.Site, tasks int) error {
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

func usage(ctx context.Context, s *crew.Site, key string) (float64, error) {
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
func (o *options) archiveAll(ctx context.Context, s *crew.Site, n int) error {
	life, c, err := o.crew(ctx, s)
	if err != nil {
		return err
	}
	_, _, err = awaitArchived(life, s, int64(n))
	return errors.Join(err, c.Stop())
}

// crew is a server, a worker and a manager.
func (o *options) crew(ctx context.Context, s *crew.Site) (context.Context, *crew.Crew, error) {
	life, c := s.Gather(ctx)
	err := errors.Join(c.Server("server"), c.Worker(crew.Hand{Name: "worker", Slots: o.slots, Handlers: o.handlers()}), c.Archiver("manager"))
	if err != nil {
		return ctx, nil, errors.Join(err, c.Stop())
	}
	return life, c, nil
}

// pollEvery is how often a run looks whether it is over.
const pollEvery = 5 * time.Millisecond

// awaitArchived waits until so many tasks are archived, and returns how many there are, and since when at most.
func awaitArchived(ctx context.Context, s *crew.Site, n int64) (int64, time.Time, error) {
	for timing.Pause(ctx, pollEvery) {
		count, err := s.Redis.DB.ZCard(ctx, s.Key(string(statemachine.Archived))).Result()
		if err != nil {
			return 0, time.Time{}, err
		}
		if count >= n {
			return count, time.Now(), nil
		}
	}
	return 0, time.Time{}, context.Cause(ctx)
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
