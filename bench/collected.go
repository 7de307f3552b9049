package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tdf-go/tdf/bench/site"
)

// mostCollecting is how long it may take to collect the results of collectedTasks.
const (
	mostCollecting = 10 * time.Second
	collectedTasks = 100_000
)

// collected measures how long tdf-manager takes to collect the results of archived tasks, in each form.
func (b *bench) collected(ctx context.Context) ([]Table, error) {
	var w strings.Builder
	var rows [][]string
	late := error(nil)
	err := site.With(ctx, func(s *site.Site) error {
		if err := errors.Join(s.Open(ctx, b.Tasks, longSpec()), b.archiveAll(ctx, s, b.Tasks)); err != nil {
			return err
		}
		for _, form := range []string{"csv", "jsonl", "tar", "dir"} {
			c, err := b.collect(ctx, s, form)
			if err != nil {
				return fmt.Errorf("results --%s: %w", form, err)
			}
			b.say("--%s: %.1f s", form, c.took.Seconds())
			rows = append(rows, append(cells("--"+form, 1, c.took.Seconds(), c.own, c.redis), cells("", 0, c.reads)[1:]...))
			if most := mostCollecting * time.Duration(b.Tasks) / collectedTasks; b.strict && c.took > most {
				late = errors.Join(late, fmt.Errorf("results --%s of %d tasks took %s, more than %s", form, b.Tasks, c.took, most))
			}
		}
		return nil
	}, b.conf, "--appendonly", "no")
	if err != nil {
		return nil, err
	}
	grid(&w, []string{"", "seconds", "processor time of tdf-manager, s", "of Redis", "reads of Redis"}, rows...)
	return textTable("collected", &w, "The results of %d archived tasks, into files", b.Tasks), late
}

// collecting is one run.
type collecting struct {
	took              time.Duration
	own, redis, reads float64
}

func (b *bench) collect(ctx context.Context, s *site.Site, form string) (c collecting, err error) {
	dir, err := os.MkdirTemp(b.dir, "collected-")
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	target := filepath.Join(dir, "results")
	args := []string{"--set", "redis.host=" + s.Redis.Socket(), "--set", "tdf.namespace=" + s.Namespace(), "results", "all"}
	file, to := (*os.File)(nil), "--"+form
	switch form {
	case "tar", "dir":
		to += "=" + target
	default:
		if file, err = os.Create(target); err != nil {
			return c, err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
	}
	cmd := exec.CommandContext(ctx, filepath.Join(b.bin, "tdf-manager"), append(args, to)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = file, &said
	before, err := s.Redis.Usage(ctx)
	if err != nil {
		return c, err
	}
	if err := cmd.Run(); err != nil {
		return c, fmt.Errorf("%w: %s", err, said.Bytes())
	}
	after, err := s.Redis.Usage(ctx)
	used := after.Since(before)
	c = collecting{took: after.At.Sub(before.At), own: used.Own, redis: used.Redis, reads: used.Reads}
	return c, errors.Join(err, b.checkCollected(form, target))
}

// checkCollected counts what was written.
func (b *bench) checkCollected(form, target string) error {
	var n int
	switch form {
	case "dir":
		folders, err := os.ReadDir(target)
		if err != nil {
			return err
		}
		n = len(folders)
	default:
		text, err := os.ReadFile(target)
		if err != nil {
			return err
		}
		n = bytes.Count(text, []byte(strings.Repeat("o", outputBytes-1)))
		if form == "tar" { // in output and in task.json
			n /= 2
		}
	}
	if n != b.Tasks {
		return fmt.Errorf("the results of %d tasks are there, want %d", n, b.Tasks)
	}
	return nil
}
