package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tdf-go/tdf/bench/site"
	"github.com/tdf-go/tdf/task"
)

// script is what each task runs.
const script = "#!/bin/sh\necho \"$1\"\n"

// The names of contenders.
const (
	groupName   = "TDF, containment group"
	defaultName = "TDF, default containment"
	spawnName   = "C, posix_spawn"
	plainName   = "Go, os/exec"
)

// programs are the contenders that run external programs: each runs run.sh N, which echoes N, for all N up to the number of
// tasks, and its output is checked.
func (b *bench) programs(ctx context.Context) ([]Table, error) {
	script, err := writeProgram(b.dir)
	if err != nil {
		return nil, err
	}
	all := []*contender{
		b.xargs(ctx, script), b.parallel(ctx, script), b.spawn(ctx, script), b.plain(plainName, script), b.asynqPrograms(ctx, script),
	}
	for _, layer := range b.containments {
		all = append(all, b.deployed(script, layer, task.ArchiveByManager, 1, b.Slots))
	}
	last := b.containments[len(b.containments)-1]
	all = append(all, b.deployed(script, last, task.ArchiveAtOnce, 1, b.Slots))
	if b.Slots > 1 {
		all = append(all, b.deployed(script, last, task.ArchiveByManager, b.Slots, 1))
	}
	xargs, parallel := all[0].name, all[1].name
	return b.compare(ctx, all, comparison{
		Table: Table{
			Name: "programs",
			Title: fmt.Sprintf("No-op `sh` programs: %d a run, %d at a time; TDF: opened, claimed, run, reported, settled, handled and archived",
				b.Tasks, b.Slots),
			Metrics: []Metric{rate}, Reference: xargs,
		},
		ratios: []Metric{rate},
		targets: []target{
			{groupName, xargs, rate, 0.85, 1}, {defaultName, xargs, rate, 0.7, 0.9},
			{defaultName + byItself, xargs, rate, 0.85, 0.95},
			{defaultName, parallel, rate, 4, 5},
		},
	})
}

// wide are those of them that tell what more slots than cores do: reports of several slots travel together.
func (b *bench) wide(ctx context.Context) ([]Table, error) {
	script, err := writeProgram(b.dir)
	if err != nil {
		return nil, err
	}
	xargs := b.xargs(ctx, script)
	return b.compare(ctx, []*contender{xargs, b.deployed(script, "group", task.ArchiveByManager, 1, b.Slots)}, comparison{
		Table: Table{
			Name: "wide", Title: fmt.Sprintf("No-op `sh` programs: %d a run, %d at a time", b.Tasks, b.Slots),
			Metrics: []Metric{rate}, Reference: xargs.name,
		},
		ratios: []Metric{rate},
	})
}

// writeProgram makes the program of the tasks in a directory of its own in dir, and returns its path.
func writeProgram(dir string) (path string, err error) {
	path = filepath.Join(dir, "program", "run.sh")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("directory for the program of the tasks: %w", err)
	}
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		return "", fmt.Errorf("writing the program of the tasks: %w", err)
	}
	return path, nil
}

// patience bounds how long something may take to start or to end.
const patience = time.Minute

// command is like exec.CommandContext, but with the context all that the program has started ends too: a terminal's ^C
// reaches this process alone.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = patience
	return cmd
}

// stderrOf returns what a failed command said on stderr, behind a colon.
func stderrOf(err error) string {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return ": " + string(exit.Stderr)
	}
	return ""
}

// plain starts the script from Go without containing anything: no session, no private directory, whatever stays behind stays.
func (b *bench) plain(name, script string) *contender {
	do := func(ctx context.Context, _, task int) error {
		cmd := exec.CommandContext(ctx, "./"+filepath.Base(script), strconv.Itoa(task))
		cmd.Dir = filepath.Dir(script)
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("plain exec: %w%s", err, stderrOf(err))
		}
		return checkOutput(task, out)
	}
	c := b.timed(name, func(ctx context.Context, n int) (time.Duration, error) {
		start := time.Now()
		err := share(ctx, b.Slots, n, do)
		return time.Since(start), err
	})
	c.peer = true
	return c
}

// checkOutput is an error unless a task has written its number.
func checkOutput(task int, out []byte) error {
	if want := strconv.Itoa(task) + "\n"; string(out) != want {
		return fmt.Errorf("task %d: output %q, not %q", task, out, want)
	}
	return nil
}

// share has the tasks from 1 to n done by as many goroutines as parallel says, and returns the first error.
func share(ctx context.Context, parallel, n int, do func(ctx context.Context, slot, task int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tasks := make(chan int, n)
	for task := range n {
		tasks <- task + 1
	}
	close(tasks)
	var wg sync.WaitGroup
	for slot := range parallel {
		wg.Go(func() {
			for task := range tasks {
				if ctx.Err() != nil {
					return
				}
				if err := do(ctx, slot, task); err != nil {
					cancel(err) // the first one counts
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// xargs executes the script as a worker does.
func (b *bench) xargs(ctx context.Context, script string) *contender {
	c := b.byLines(fmt.Sprintf("xargs -P%d", b.Slots), script, "xargs", "-P", strconv.Itoa(b.Slots), "-n", "1", "./"+filepath.Base(script))
	c.absent = b.have(ctx, "xargs", "xargs", "--version")
	return c
}

// parallel is GNU parallel with the same work; it keeps the outputs of tasks apart.
func (b *bench) parallel(ctx context.Context, script string) *contender {
	jobs := "-j" + strconv.Itoa(b.Slots)
	c := b.byLines("GNU parallel "+jobs, script, "parallel", jobs, "./"+filepath.Base(script))
	c.absent = b.have(ctx, "GNU parallel", "parallel", "--version")
	return c
}

// spawn is bench/peers/spawn.c: a loop of posix_spawn that takes the output of each program.
func (b *bench) spawn(ctx context.Context, script string) *contender {
	binary := filepath.Join(b.dir, "spawn")
	c := b.byLines(spawnName, script, binary, strconv.Itoa(b.Slots), "./"+filepath.Base(script))
	if c.absent = b.have(ctx, "C compiler", "cc", "--version"); c.absent != "" {
		return c
	}
	if out, err := command(ctx, "cc", "-O2", "-o", binary, filepath.Join(b.peers, "spawn.c")).CombinedOutput(); err != nil {
		b.say("cc: %v\n%s", err, out)
		c.absent = "cc cannot compile spawn.c: " + err.Error()
	}
	return c
}

// asynqPrograms is asynq with a handler that starts the program.
func (b *bench) asynqPrograms(ctx context.Context, script string) *contender {
	const name = asynqName + ", sh run.sh"
	if !b.mayWant(name) {
		return &contender{name: name, peer: true, absent: "not selected"}
	}
	p := b.asynq(ctx, "--concurrency", strconv.Itoa(b.Slots))
	return &contender{name: name, peer: true, absent: p.absent, run: func(ctx context.Context) (reading, error) {
		rep, _, err := p.run(ctx, name, b.Tasks, 0, "--command", "sh "+script)
		return reading{rate.Name: float64(b.Tasks) / (rep.Enqueue + rep.Process)}, err
	}}
}

// byLines runs a program that gets the numbers of the tasks as lines, and writes what each task has written.
func (b *bench) byLines(name, script, program string, args ...string) *contender {
	c := b.timed(name, func(ctx context.Context, n int) (time.Duration, error) {
		var numbers strings.Builder
		for i := 1; i <= n; i++ {
			fmt.Fprintln(&numbers, i)
		}
		cmd := command(ctx, program, args...)
		cmd.Dir, cmd.Stdin = filepath.Dir(script), strings.NewReader(numbers.String())
		start := time.Now()
		out, err := cmd.Output()
		took := time.Since(start)
		if err != nil {
			return 0, fmt.Errorf("%s: %w%s", name, err, stderrOf(err))
		}
		return took, checkLines(name, n, out)
	})
	c.peer = true
	return c
}

// checkLines is an error unless each number is there once, in whatever order.
func checkLines(name string, n int, out []byte) error {
	seen := make([]bool, n+1)
	lines := bytes.Split(bytes.TrimSuffix(out, []byte("\n")), []byte("\n"))
	for _, line := range lines {
		task, err := strconv.Atoi(string(line))
		if err != nil || task < 1 || task > n || seen[task] {
			return fmt.Errorf("%s: unexpected line of output %q", name, line)
		}
		seen[task] = true
	}
	if len(lines) != n {
		return fmt.Errorf("%s: %d lines of output from %d tasks", name, len(lines), n)
	}
	return nil
}

// deployed is TDF as it is deployed, on a private Redis.
func (b *bench) deployed(script, containment, archive string, workers, slots int) *contender {
	name := "TDF, containment " + containment
	if containment == "auto" {
		name = defaultName
	}
	if archive == task.ArchiveAtOnce {
		name += byItself
	}
	if workers > 1 {
		name += fmt.Sprintf(", %d workers of %d slot", workers, slots)
	}
	return b.timed(name, func(ctx context.Context, n int) (took time.Duration, err error) {
		err = withRedis(ctx, func(srv *site.Redis) error {
			tdf := deployment{
				bin: b.bin, dir: b.dir, redis: srv.Socket(), script: script, workers: workers, slots: slots, containment: containment,
				archive: archive, settings: b.settings,
			}
			took, err = tdf.run(ctx, n)
			return err
		})
		return took, err
	})
}

// report runs a program that measures a queue and prints one JSON object, which it reads into the value.
func report(name string, cmd *exec.Cmd, into any) error {
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w%s", name, err, stderrOf(err))
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("%s: its report %q: %w", name, out, err)
	}
	return nil
}
