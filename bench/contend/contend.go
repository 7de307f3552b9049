// Package contend has the systems that several benchmarks let run external programs: xargs, GNU parallel, loops in C and
// Go, and TDF as it is deployed. Each runs run.sh N, a shell script that echoes N, for all N up to a number of tasks, and
// checks what came out. All that is started is in a process group of its own, and ends with the context.
package contend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
