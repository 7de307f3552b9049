package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// deployment is TDF as it is deployed: the built server and workers, each a process, and a manager in this process that opens
// all tasks, and handles their results unless these are archived at once. All log as much as by default, into files.
type deployment struct {
	// bin is the directory of the built programs, dir one for configurations and logs, script the program of the tasks.
	bin, dir, script string
	// redis is the path of a socket.
	redis string
	// slots are those of each worker.
	workers, slots int
	// containment is that of the configuration; any but auto is required.
	containment string
	// archive is the field of the tasks.
	archive string
	// settings are further ones of the daemons, as in worker.keep_rounds=1.
	settings []string
}

// run measures from the first task opened to the last one archived. Starting the
// daemons and fetching the program are not in it.
func (t deployment) run(ctx context.Context, n int) (took time.Duration, err error) {
	dir, err := os.MkdirTemp(t.dir, "tdf-")
	if err != nil {
		return 0, err
	}
	config := filepath.Join(dir, "tdf.cfg") // for all programs
	text := fmt.Sprintf("[redis]\nhost=%s\n[tdf]\nnamespace=bench\n[worker]\nprogram_dir=%s\n", t.redis, filepath.Join(dir, "programs"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return 0, err
	}
	daemons, err := t.startDaemons(ctx, dir, config)
	if err == nil {
		took, err = t.measure(ctx, dir, config, n)
	}
	return took, errors.Join(err, stopAll(daemons))
}

// measure plays the manager, with the daemons there.
func (t deployment) measure(ctx context.Context, dir, config string, n int) (took time.Duration, err error) {
	log, err := os.Create(filepath.Join(dir, "manager.log"))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	place, err := tdf.Load(config)
	if err != nil {
		return 0, err
	}
	place.Logger = slog.New(slog.NewTextHandler(log, nil))
	site, err := tdf.Connect(ctx, place)
	if err != nil {
		return 0, err
	}
	defer func() { _ = site.Close() }()
	m := manager.New(site, "bench", manager.Options{})
	// As tdf-manager run: a manager mostly waits.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if _, err := t.campaign(ctx, m, 10*t.workers*t.slots); err != nil { // fetches the program and starts the shims
		return 0, err
	}
	return t.campaign(ctx, m, n)
}

// startDaemons returns what it has started also with an error.
func (t deployment) startDaemons(ctx context.Context, dir, config string) (all []*daemon, err error) {
	start := func(name, program string, args ...string) error {
		for _, setting := range t.settings {
			args = append(args, "--set", setting)
		}
		d, err := startDaemon(ctx, dir, name, filepath.Join(t.bin, program), args...)
		if err == nil {
			all = append(all, d)
		}
		return err
	}
	if err := start("server", "tdf-server", config); err != nil {
		return all, err
	}
	for i := range t.workers {
		name := fmt.Sprintf("worker-%d", i+1)
		err := start(name, "tdf-worker", name, config,
			"--set", "worker.slots="+strconv.Itoa(t.slots), "--set", "worker.containment="+t.containment,
			"--set", "worker.require_containment="+strconv.FormatBool(t.containment != "auto"))
		if err != nil {
			return all, err
		}
		if err := all[len(all)-1].awaitLine(ctx, "no open task to claim"); err != nil {
			return all, err
		}
	}
	return all, nil
}

// campaign opens n tasks, waits until they are archived, which it times, and checks what they gave.
func (t deployment) campaign(ctx context.Context, m *manager.Manager, n int) (time.Duration, error) {
	start := time.Now()
	all, err := m.SubmitAll(ctx, numbered(task.Spec{Program: "bench", Source: "rsync:" + t.script, Archive: t.archive}, n))
	if err != nil {
		return 0, err
	}
	if t.archive != task.ArchiveAtOnce {
		err := site.Archive(ctx, m, n, checkTask)
		return time.Since(start), err
	}
	err = site.AwaitArchived(ctx, m)
	took := time.Since(start)
	for part := range slices.Chunk(all, 100) {
		tasks, readErr := m.Tasks(ctx, task.IDs(part))
		err = errors.Join(err, readErr)
		for _, task := range tasks {
			err = cmp.Or(err, checkTask(task))
		}
	}
	return took, err
}

// checkTask is checkOutput of a task's input.
func checkTask(task *task.Task) error {
	if task.Output() == task.Input+"\n" {
		return nil
	}
	return fmt.Errorf("task %d has %s: input %q, output %q, error %q",
		task.ID, task.EndState(), task.Input, task.Output(), task.Failure())
}

// daemon is one of the built programs while it runs.
type daemon struct {
	name, log string
	cmd       *exec.Cmd
}

// startDaemon runs a program in dir, with its log in a file there, as a
// supervisor would. It logs as much as it does by default.
func startDaemon(ctx context.Context, dir, name, binary string, args ...string) (*daemon, error) {
	d := &daemon{name: name, log: filepath.Join(dir, name+".log"), cmd: command(ctx, binary, args...)}
	file, err := os.Create(d.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	d.cmd.Dir, d.cmd.Stderr = dir, file
	d.cmd.Cancel = func() error { return d.cmd.Process.Signal(syscall.SIGTERM) }
	d.cmd.WaitDelay = patience
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s (make build makes it): %w", name, err)
	}
	return d, nil
}

// awaitLine waits until a text stands in the log.
func (d *daemon) awaitLine(ctx context.Context, text string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("waited "+patience.String()))
	defer cancel()
	err := site.Await(ctx, 5*time.Millisecond, func() (bool, error) {
		content, err := os.ReadFile(d.log)
		return bytes.Contains(content, []byte(text)), err
	})
	if err != nil {
		return fmt.Errorf("%s does not say %q: %w\n%s", d.name, text, err, d.tail())
	}
	return nil
}

// tail is the end of the log.
func (d *daemon) tail() []byte {
	content, err := os.ReadFile(d.log)
	if err != nil {
		return []byte(err.Error())
	}
	return content[max(0, len(content)-1000):]
}

// stopAll ends daemons in good order.
func stopAll(daemons []*daemon) error {
	for _, d := range daemons {
		_ = d.cmd.Process.Signal(syscall.SIGTERM) // Wait tells if it has ended before
	}
	var errs []error
	for _, d := range daemons {
		killer := time.AfterFunc(patience, func() { _ = d.cmd.Process.Kill() })
		if err := d.cmd.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w\n%s", d.name, err, d.tail()))
		}
		killer.Stop()
	}
	return errors.Join(errs...)
}
