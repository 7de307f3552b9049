package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/coverage"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/base/embedded"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// path is what one task of a program passes from open to archived, in a process that is server, worker and manager.
// Its shim, a process of its own, is left out.
type path struct {
	// open are the calls of functions while the task is opened, life those of the whole, without loops that run anyway.
	open, life map[function]int
}

// function is where the body of a function begins, as file:line.column.
type function string

func (f function) file() string { return strings.Split(string(f), ":")[0] }

func (p *path) functions() int { return len(p.life) }

func (p *path) files() int { return countBy(p.life, function.file) }

func (p *path) packages() int {
	return countBy(p.life, func(f function) string { return filepath.Dir(f.file()) })
}

func countBy(calls map[function]int, of func(function) string) int {
	seen := map[string]bool{}
	for f := range calls {
		seen[of(f)] = true
	}
	return len(seen)
}

func (p *path) opening() int { return len(p.open) }

func (p *path) calls() (n int) {
	for _, calls := range p.open {
		n += calls
	}
	return n
}

const (
	warm   = 2
	quiet  = 5 * time.Second // in which every loop has come round
	repeat = 3               // tasks; what only some of them pass is a loop that came round just then
)

// walk measures the path. The program must have been built with -cover -covermode=atomic.
func walk(ctx context.Context, h *house) (p path, err error) {
	dir, err := os.MkdirTemp("", "shape-")
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Setenv("GOCOVERDIR", dir); err != nil { // for the shim
		return p, err
	}
	m := &meter{house: h, dir: dir}
	s, err := startSite(ctx, dir)
	if err != nil {
		return p, err
	}
	defer s.end()
	return m.path(ctx, s)
}

func (m *meter) path(ctx context.Context, s *site) (p path, err error) {
	for range warm { // the first one makes connections and loads scripts
		if p.open, err = m.during(ctx, s.open); err != nil {
			return p, err
		}
	}
	s.start(ctx)
	for range warm {
		if err := s.archived(ctx); err != nil {
			return p, err
		}
	}
	idle, err := m.during(ctx, func(context.Context) error { <-time.After(quiet); return nil })
	if err != nil {
		return p, err
	}
	for range repeat {
		life, err := m.during(ctx, func(ctx context.Context) error { return errors.Join(s.open(ctx), s.archived(ctx)) })
		if err != nil {
			return p, err
		}
		maps.DeleteFunc(life, func(f function, _ int) bool { return idle[f] > 0 || p.life != nil && p.life[f] == 0 })
		p.life = life
	}
	return p, nil
}

// site is a namespace on an embedded Redis with all that works for it.
type site struct {
	dir     string
	manager *manager.Manager
	server  *server.Server
	worker  *worker.Worker
	done    chan struct{} // one for each task that is archived
	ends    []func()
}

func (s *site) end() {
	for _, end := range s.ends {
		defer end()
	}
}

// startSite makes all parts; start lets server, worker and manager work.
func startSite(ctx context.Context, dir string) (s *site, err error) {
	s = &site{dir: dir, done: make(chan struct{}, warm)}
	defer func() {
		if err != nil {
			s.end()
		}
	}()
	where, end, err := embedded.Start(config.Redis{})
	if err != nil {
		return s, err
	}
	s.ends = append(s.ends, end)
	file, err := s.configure(where)
	if err != nil {
		return s, err
	}
	config, err := tdf.Load(file)
	if err != nil {
		return s, err
	}
	config.Logger = slog.New(slog.DiscardHandler)
	place, err := tdf.Connect(ctx, config)
	if err != nil {
		return s, err
	}
	s.ends = append(s.ends, func() { _ = place.Close() })
	s.manager = manager.New(place, "manager", manager.Options{})
	if s.worker, err = worker.New(place, worker.Options{Name: "worker"}); err != nil {
		return s, err
	}
	s.server, err = server.New(place, server.Options{})
	return s, err
}

// configure writes the configuration, and installs the program.
func (s *site) configure(where config.Redis) (string, error) {
	program, file := filepath.Join(s.dir, "programs", "nothing"), filepath.Join(s.dir, "site.cfg")
	text := fmt.Sprintf("[redis]\nhost=%s\nport=%d\n[tdf]\nnamespace=shape\n[worker]\nprogram_dir=%s\nspool_dir=%s\n",
		where.Host, where.Port, filepath.Dir(program), filepath.Join(s.dir, "spool"))
	return file, errors.Join(os.MkdirAll(program, 0o700),
		os.WriteFile(filepath.Join(program, "run.sh"), []byte("#!/bin/sh\n"), 0o700),
		os.WriteFile(file, []byte(text), 0o600))
}

// start lets the parts work until ctx ends.
func (s *site) start(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var parts sync.WaitGroup
	parts.Go(func() { _ = s.server.Run(ctx) })
	parts.Go(func() { _ = s.worker.Run(ctx) })
	parts.Go(func() {
		handled := 0
		_ = s.manager.Run(ctx, manager.Handlers{
			Succeeded: func(context.Context, *task.Task) error { handled++; return nil },
			Unhandled: func(_ context.Context, t *task.Task) error {
				return fmt.Errorf("task %d has %s: %v", t.ID, t.Outcome, t.Rounds)
			},
			AfterPass: func(context.Context, int) error {
				for ; handled > 0; handled-- { // a pass archives what it has handled
					s.done <- struct{}{}
				}
				return nil
			},
		})
	})
	s.ends = append(s.ends, func() { cancel(); parts.Wait() })
}

func (s *site) open(ctx context.Context) error {
	_, err := s.manager.Submit(ctx, task.Spec{Program: "nothing", Source: "http://127.0.0.1:1/nothing.tar.gz"})
	return err
}

func (s *site) archived(ctx context.Context) error {
	select {
	case <-s.done:
		return nil
	case <-time.After(time.Minute):
		return errors.New("no task is archived within a minute")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// meter counts calls of functions.
type meter struct {
	house    *house
	dir      string
	measured int
}

// during counts the calls of the product's functions while f runs.
func (m *meter) during(ctx context.Context, f func(context.Context) error) (map[function]int, error) {
	m.measured++
	dir := filepath.Join(m.dir, "counters-"+strconv.Itoa(m.measured))
	if err := errors.Join(os.Mkdir(dir, 0o700), coverage.ClearCounters()); err != nil {
		return nil, err
	}
	if err := f(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(coverage.WriteMetaDir(dir), coverage.WriteCountersDir(dir)); err != nil {
		return nil, err
	}
	read := exec.CommandContext(ctx, "go", "tool", "covdata", "textfmt", "-i="+dir, "-o=/dev/stdout")
	text, err := read.Output()
	if err != nil {
		return nil, fmt.Errorf("go tool covdata: %w", err)
	}
	return m.calls(string(text)), nil
}

// block is a line of a profile: a file, where in it a block begins, and how often that ran.
var block = regexp.MustCompile(`^github\.com/tdf-go/tdf/(\S+):(\d+\.\d+),\S+ \d+ (\d+)$`)

// calls are those blocks that begin where the body of a function does.
func (m *meter) calls(profile string) map[function]int {
	calls := map[function]int{}
	for line := range strings.Lines(profile) {
		f := block.FindStringSubmatch(strings.TrimSpace(line))
		if f == nil || !product(f[1]) || f[3] == "0" {
			continue
		}
		if at := function(f[1] + ":" + f[2]); m.house.begins[at] {
			n, _ := strconv.Atoi(f[3])
			calls[at] += n
		}
	}
	return calls
}
