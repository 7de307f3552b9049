// Package contend has the systems that several benchmarks let run external programs: xargs, GNU parallel, loops in C and
// Go, and TDF as it is deployed. Each runs run.sh N, a shell script that echoes N, for all N up to a number of tasks, and
// checks what came out. All that is started is in a process group of its own, and ends with the context.
package contend

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
)

// Program is what each task runs.
const Program = "#!/bin/sh\necho \"$1\"\n"

// Contender is one system that can run n tasks and say how long it took from the first submission to the last end.
type Contender struct {
	Name string
	Run  func(ctx context.Context, n int) (time.Duration, error)
}

// WriteProgram makes the program of the tasks in a directory of its own in dir, and returns its path.
func WriteProgram(dir string) (script string, err error) {
	script = filepath.Join(dir, "program", "run.sh")
	if err := os.MkdirAll(filepath.Dir(script), 0o755); err != nil {
		return "", fmt.Errorf("directory for the program of the tasks: %w", err)
	}
	if err := os.WriteFile(script, []byte(Program), 0o755); err != nil {
		return "", fmt.Errorf("writing the program of the tasks: %w", err)
	}
	return script, nil
}

// Wait bounds how long something may take to start or to end.
const Wait = time.Minute

// Command is like exec.CommandContext, but with the context all that the program has started ends too: a terminal's ^C
// reaches this process alone.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = Wait
	return cmd
}

// StderrOf returns what a failed command said on stderr, behind a colon.
func StderrOf(err error) string {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return ": " + string(exit.Stderr)
	}
	return ""
}

const pollEvery = 5 * time.Millisecond

// Poll waits until condition is true, at most [Wait].
func Poll(ctx context.Context, condition func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Wait, errors.New("waited "+Wait.String()))
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return nil
}

// Plain starts the script from Go as one does who contains nothing: no session, no private directory, whatever stays
// behind stays.
func Plain(parallel int, script string) Contender {
	do := func(ctx context.Context, _, task int) error {
		cmd := exec.CommandContext(ctx, "./"+filepath.Base(script), strconv.Itoa(task))
		cmd.Dir = filepath.Dir(script)
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("plain exec: %w%s", err, StderrOf(err))
		}
		return CheckOutput("plain exec", task, out)
	}
	run := func(ctx context.Context, n int) (time.Duration, error) {
		start := time.Now()
		err := Share(ctx, parallel, n, do)
		return time.Since(start), err
	}
	return Contender{"Go, contains nothing", run}
}

// CheckOutput is an error unless a task has written its number.
func CheckOutput(who string, task int, out []byte) error {
	if want := strconv.Itoa(task) + "\n"; string(out) != want {
		return fmt.Errorf("%s: task %d: output %q, not %q", who, task, out, want)
	}
	return nil
}

// Share has the tasks from 1 to n done by as many goroutines as parallel says, and returns the first error.
func Share(ctx context.Context, parallel, n int, do func(ctx context.Context, slot, task int) error) error {
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

// Xargs runs `xargs -P parallel -n 1 sh script` over the numbers from 1 to n.
func Xargs(parallel int, script string) Contender {
	return xargsIn("", parallel, "sh", script)
}

// XargsDirectly does the same, but executes the script as a worker does.
func XargsDirectly(parallel int, script string) Contender {
	return xargsIn(filepath.Dir(script), parallel, "./"+filepath.Base(script))
}

func xargsIn(dir string, parallel int, words ...string) Contender {
	args := append([]string{"-P", strconv.Itoa(parallel), "-n", "1"}, words...)
	return byLines(fmt.Sprintf("xargs -P%d", parallel), dir, "xargs", args...)
}

// Parallel is GNU parallel with the same work; it keeps the outputs of tasks apart.
func Parallel(parallel int, script string) Contender {
	jobs := "-j" + strconv.Itoa(parallel)
	return byLines("GNU parallel "+jobs, filepath.Dir(script), "parallel", jobs, "./"+filepath.Base(script))
}

// Spawn is the compiled bench/peers/spawn.c: a loop of posix_spawn that takes the output of each program.
func Spawn(binary string, parallel int, script string) Contender {
	return byLines("C, posix_spawn", filepath.Dir(script), binary, strconv.Itoa(parallel), "./"+filepath.Base(script))
}

// byLines runs a program that gets the numbers of the tasks as lines, and writes what each task has written.
func byLines(name, dir, program string, args ...string) Contender {
	run := func(ctx context.Context, n int) (time.Duration, error) {
		var numbers strings.Builder
		for i := 1; i <= n; i++ {
			fmt.Fprintln(&numbers, i)
		}
		cmd := Command(ctx, program, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(numbers.String())
		start := time.Now()
		out, err := cmd.Output()
		took := time.Since(start)
		if err != nil {
			return 0, fmt.Errorf("%s: %w%s", name, err, StderrOf(err))
		}
		return took, checkLines(name, n, out)
	}
	return Contender{name, run}
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

// BuildAsynq compiles the program of the module in the directory peers into dir, and returns its path.
func BuildAsynq(ctx context.Context, peers, dir string) (binary string, err error) {
	binary = filepath.Join(dir, "asynq")
	cmd := Command(ctx, "go", "build", "-o", binary, "./asynq")
	cmd.Dir = peers
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s/asynq: %w\n%s", peers, err, out)
	}
	return binary, nil
}

// Report runs a program that measures a queue and prints one JSON object, which it reads into the value.
func Report(name string, cmd *exec.Cmd, into any) error {
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w%s", name, err, StderrOf(err))
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("%s: its report %q: %w", name, out, err)
	}
	return nil
}
