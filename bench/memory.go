package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

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
		Retry: task.Retry{Limit: task.AtMost(3)}, MaxTimeouts: task.AtMost(3),
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
		_, err := io.WriteString(j.Stdout(), line)
		return err
	}}
}

// footprint is how many bytes Redis has allocated for a task.
type footprint struct {
	waiting, hash, open, ready, due float64 // while it waits, in all and where they lie
	archived                        float64
}

// memory measures what waiting and archived tasks take, with the shipped redis.conf and with the defaults of Redis.
func (b *bench) memory(ctx context.Context) ([]Table, error) {
	var w strings.Builder
	var rows [][]string
	plain := longSpec()
	for _, c := range []struct {
		name     string
		spec     task.Spec
		settings []string
	}{
		{"shipped redis.conf", plain, []string{b.conf}},
		{"shipped redis.conf, finite end_before and timeout", finite(plain), []string{b.conf}},
		{"defaults of Redis", plain, nil},
		{"defaults of Redis, finite end_before and timeout", finite(plain), nil},
	} {
		f, err := b.footprint(ctx, c.spec, c.settings...)
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

func (b *bench) footprint(ctx context.Context, spec task.Spec, settings ...string) (f footprint, err error) {
	var used [3]site.Usage // with fill, with all waiting, with all archived
	all := b.fill + b.Tasks
	err = site.With(ctx, func(s *site.Site) error {
		for i, step := range []func() error{
			func() error { return s.Open(ctx, b.fill, spec) },
			func() error { return s.Open(ctx, b.Tasks, spec) },
			func() error { return errors.Join(f.places(ctx, s, all), b.archiveAll(ctx, s, all)) },
		} {
			if err := step(); err != nil {
				return err
			}
			if used[i], err = s.Redis.Usage(ctx); err != nil {
				return err
			}
		}
		return nil
	}, settings...)
	f.waiting = (used[1].Memory - used[0].Memory) / float64(b.Tasks)
	// The first tasks are archived too, and take the same.
	f.archived = (used[2].Memory - (used[0].Memory - f.waiting*float64(b.fill))) / float64(all)
	return f, err
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
	return b.withDaemons(ctx, s, func(ctx context.Context) error {
		_, err := s.AwaitCard(ctx, string(statemachine.Archived), int64(n), pollEvery)
		return err
	})
}

// withDaemons calls do while a server, a worker and a manager are at work.
func (b *bench) withDaemons(ctx context.Context, s *site.Site, do func(ctx context.Context) error) error {
	return s.Run(ctx, func(ctx context.Context, c *site.Crew) error {
		hand := site.Hand{Slots: b.Slots, Handlers: lineHandler()}
		if err := errors.Join(c.Servers(1), c.Workers(1, hand), c.Archiver("manager")); err != nil {
			return err
		}
		return do(ctx)
	})
}
