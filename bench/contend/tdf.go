package contend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// TDF is TDF as it is deployed: the built server and workers, each a process,
// and a manager in this process that opens all tasks, handles their results and
// archives them.
type TDF struct {
	// Bin is the directory of the built programs, Dir one for configurations and logs, Script the program of the tasks.
	Bin, Dir, Script string
	// Redis is host:port, or the path of a socket.
	Redis string
	// Slots are those of each worker.
	Workers, Slots int
	// Containment is that of the configuration; any but auto is required.
	Containment string
	// Settings are further ones of the daemons, as in worker.keep_rounds=1.
	Settings []string
}

// Contender runs tasks with all logs in files, as much as is logged by default.
func (t TDF) Contender() Contender {
	return Contender{fmt.Sprintf("TDF, workers x slots %dx%d, %s", t.Workers, t.Slots, t.Containment), t.run}
}

// run measures from the first task opened to the last one archived. Starting the
// daemons and fetching the program are not in it.
func (t TDF) run(ctx context.Context, n int) (took time.Duration, err error) {
	dir, err := os.MkdirTemp(t.Dir, "tdf-")
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
func (t TDF) measure(ctx context.Context, dir, config string, n int) (took time.Duration, err error) {
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
	// As tdf-manager run: a manager mostly waits.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if err := t.campaign(ctx, m, 10*t.Workers*t.Slots); err != nil { // fetches the program and starts the shims
		return 0, err
	}
	start := time.Now()
	err = t.campaign(ctx, m, n)
	return time.Since(start), err
}

// writeConfig writes one file for all programs: a namespace of its own for each
// run, and beside that what is required.
func (t TDF) writeConfig(dir string) (string, error) {
	host, port := t.Redis, ""
	if !filepath.IsAbs(host) {
		var err error
		if host, port, err = net.SplitHostPort(t.Redis); err != nil {
			return "", err
		}
		port = "port=" + port + "\n"
	}
	text := fmt.Sprintf("[redis]\nhost=%s\n%s[tdf]\nnamespace=%s\n[worker]\nprogram_dir=%s\n",
		host, port, "bench-"+strconv.FormatInt(time.Now().UnixNano(), 36), filepath.Join(dir, "programs"))
	file := filepath.Join(dir, "tdf.cfg")
	return file, os.WriteFile(file, []byte(text), 0o600)
}

// startDaemons returns what it has started also with an error.
func (t TDF) startDaemons(ctx context.Context, dir, config string) (all []*daemon, err error) {
	server, err := startDaemon(ctx, dir, "server", filepath.Join(t.Bin, "tdf-server"),
		t.with(config)...)
	if err != nil {
		return nil, err
	}
	all = append(all, server)
	for i := range t.Workers {
		name := fmt.Sprintf("worker-%d", i+1)
		d, err := startDaemon(ctx, dir, name, filepath.Join(t.Bin, "tdf-worker"), t.with(name, config,
			"--set", "worker.slots="+strconv.Itoa(t.Slots), "--set", "worker.containment="+t.Containment,
			"--set", "worker.require_containment="+strconv.FormatBool(t.Containment != "auto"))...)
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

// with adds the further settings to the arguments of a daemon.
func (t TDF) with(args ...string) []string {
	for _, setting := range t.Settings {
		args = append(args, "--set", setting)
	}
	return args
}

// campaign opens n tasks and waits until they are archived, and checks what they
// gave.
func (t TDF) campaign(ctx context.Context, m *manager.Manager, n int) error {
	if _, err := m.OpenAll(ctx, t.specs(n)); err != nil {
		return err
	}
	return Archive(ctx, m, n, func(task *manager.Task) error {
		if task.Output() == task.Input+"\n" {
			return nil
		}
		return fmt.Errorf("task %d has %s: input %q, output %q, error %q",
			task.ID, task.EndState(), task.Input, task.Output(), task.Last().Error)
	})
}

func (t TDF) specs(n int) func(yield func(task.Spec) bool) {
	return func(yield func(task.Spec) bool) {
		for i := range n {
			if !yield(task.Spec{Program: "bench", Source: "rsync:" + t.Script, Input: strconv.Itoa(i + 1)}) {
				return
			}
		}
	}
}

// daemon is one of the built programs while it runs.
type daemon struct {
	name, log string
	cmd       *exec.Cmd
}

// startDaemon runs a program in dir, with its log in a file there, as a
// supervisor would. It logs as much as it does by default.
func startDaemon(ctx context.Context, dir, name, binary string, args ...string) (*daemon, error) {
	d := &daemon{name: name, log: filepath.Join(dir, name+".log"), cmd: Command(ctx, binary, args...)}
	file, err := os.Create(d.log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	d.cmd.Dir, d.cmd.Stderr = dir, file
	d.cmd.Cancel = func() error { return d.cmd.Process.Signal(syscall.SIGTERM) }
	d.cmd.WaitDelay = Wait
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s (make build makes it): %w", name, err)
	}
	return d, nil
}

// awaitLine waits until a text stands in the log.
func (d *daemon) awaitLine(ctx context.Context, text string) error {
	err := Poll(ctx, func() bool {
		content, err := os.ReadFile(d.log)
		return err == nil && bytes.Contains(content, []byte(text))
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
		killer := time.AfterFunc(Wait, func() { _ = d.cmd.Process.Kill() })
		if err := d.cmd.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w\n%s", d.name, err, d.tail()))
		}
		killer.Stop()
	}
	return errors.Join(errs...)
}

// Archive handles n tasks, and returns when they and all others are archived, or one of them is wrong.
func Archive(ctx context.Context, m *manager.Manager, n int, check func(*manager.Task) error) error {
	handled := make(map[int64]bool, n)
	var wrong error
	handle := func(_ context.Context, _ *manager.Manager, task *manager.Task) error {
		handled[task.ID] = true
		if err := check(task); err != nil {
			wrong = err
		}
		return nil
	}
	err := m.Run(ctx, manager.Handlers{
		Succeeded: handle, Unhandled: handle,
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
