package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/manager"
)

// tdf is TDF as it is deployed: the built server and workers, each a process,
// and a manager in this process that opens all tasks, handles their results and
// archives them.
type tdf struct {
	bin, dir, redis, script string
	workers, slots          int    // slots of each worker
	containment             string // as in the configuration
}

func (t tdf) contender() contender {
	return contender{fmt.Sprintf("TDF, workers x slots %dx%d, %s", t.workers, t.slots, t.containment), t.run}
}

// run measures from the first task opened to the last one archived. Starting the
// daemons and fetching the program are not in it.
func (t tdf) run(ctx context.Context, n int) (took time.Duration, err error) {
	dir, err := os.MkdirTemp(t.dir, "tdf-")
	if err != nil {
		return 0, err
	}
	config, err := t.writeConfig(dir)
	if err != nil {
		return 0, err
	}
	daemons, err := t.startDaemons(ctx, dir, config)
	defer func() { err = errors.Join(err, stopAll(daemons)) }()
	if err != nil {
		return 0, err
	}
	return t.measure(ctx, dir, config, n)
}

// measure plays the manager, with the daemons there.
func (t tdf) measure(ctx context.Context, dir, config string, n int) (took time.Duration, err error) {
	log, err := os.Create(filepath.Join(dir, "manager.log"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	m, err := manager.New(ctx, "bench", config, manager.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	if err != nil {
		return 0, err
	}
	defer func() { _ = m.Close() }()
	if err := t.campaign(ctx, m, 10*t.workers*t.slots); err != nil { // fetches the program and starts the shims
		return 0, err
	}
	start := time.Now()
	err = t.campaign(ctx, m, n)
	return time.Since(start), err
}

// writeConfig writes one file for all programs: a namespace of its own for each
// run, and beside that what is required.
func (t tdf) writeConfig(dir string) (string, error) {
	host, port, err := net.SplitHostPort(t.redis)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("[redis]\nhost=%s\nport=%s\n[tdf]\nnamespace=%s\n[worker]\nprogram_dir=%s\n",
		host, port, "bench-"+strconv.FormatInt(time.Now().UnixNano(), 36), filepath.Join(dir, "programs"))
	file := filepath.Join(dir, "tdf.cfg")
	return file, os.WriteFile(file, []byte(text), 0o600)
}

// startDaemons returns what it has started also with an error.
func (t tdf) startDaemons(ctx context.Context, dir, config string) (all []*daemon, err error) {
	server, err := startDaemon(ctx, dir, "server", filepath.Join(t.bin, "tdf-server"), config)
	if err != nil {
		return nil, err
	}
	all = append(all, server)
	for i := range t.workers {
		name := fmt.Sprintf("worker-%d", i+1)
		d, err := startDaemon(ctx, dir, name, filepath.Join(t.bin, "tdf-worker"), name, config,
			"--set", "worker.slots="+strconv.Itoa(t.slots), "--set", "worker.containment="+t.containment,
			"--set", "worker.require_containment="+strconv.FormatBool(t.containment != "auto"))
		if err != nil {
			return all, err
		}
		all = append(all, d)
		if err := d.awaitLine(ctx, "no open task to claim"); err != nil {
			return all, err
		}
	}
	return all, nil
}

// campaign opens n tasks and waits until they are archived, and checks what they
// gave.
func (t tdf) campaign(ctx context.Context, m *manager.Manager, n int) error {
	if _, err := m.OpenAll(ctx, t.specs(n)); err != nil {
		return err
	}
	handled := map[int64]bool{}
	var wrong error
	handle := func(_ context.Context, _ *manager.Manager, task *manager.Task) error {
		handled[task.ID] = true
		if task.Output() != task.Input+"\n" {
			wrong = fmt.Errorf("task %d has %s: input %q, output %q, error %q",
				task.ID, task.EndState(), task.Input, task.Output(), task.Last().Error)
		}
		return nil
	}
	err := m.Run(ctx, manager.Handlers{
		Succeeded: handle, Failed: handle, TimedOut: handle, Expired: handle,
		Cancelled: handle, Terminated: handle, Orphaned: handle,
		Stop: func(ctx context.Context, m *manager.Manager, _ int) bool {
			if wrong != nil || len(handled) < n {
				return wrong != nil
			}
			counts, err := m.Count(ctx)
			return err == nil && counts.Unarchived() == 0
		},
	})
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("%d of %d tasks handled: %w", len(handled), n, context.Cause(ctx))
	}
	return errors.Join(err, wrong)
}

func (t tdf) specs(n int) func(yield func(manager.Spec) bool) {
	return func(yield func(manager.Spec) bool) {
		for i := range n {
			if !yield(manager.Spec{Program: "bench", Source: "rsync:" + t.script, Input: strconv.Itoa(i + 1)}) {
				return
			}
		}
	}
}
