package process

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"
)

const (
	programFile = "run.sh"
	shell       = "/bin/sh"
	// busyPauses bounds the wait for another goroutine's fork to let go of a
	// freshly written run.sh: 1, 2, 4 ... 64 ms.
	busyPauses = 7
)

// start forks and executes ./run.sh and returns its process id. The calling
// goroutine must stay on its thread until the program is reaped: the
// parent-death signal is sent when that thread ends.
func start(ctx context.Context, s *Spec, files *stdio) (int, error) {
	attr := &syscall.ProcAttr{
		Dir:   s.Dir,
		Env:   s.Env,
		Files: []uintptr{uintptr(files[0]), uintptr(files[1]), uintptr(files[2])},
		// A session rather than only a group: without a controlling terminal, a
		// program that asks one for a password fails instead of being stopped.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	argv := append(make([]string, 0, len(s.Args)+1), "./"+programFile)
	argv = append(argv, s.Args...)
	pid, err := forkExec(ctx, argv, attr)
	if errors.Is(err, syscall.ENOEXEC) && isText(s.Dir) {
		// No #! line. Every shell runs such a file as a script; so did the original.
		pid, err = forkExec(ctx, slices.Insert(argv, 0, shell), attr)
	}
	if err != nil {
		return 0, diagnose(s, err)
	}
	return pid, nil
}

// forkExec runs argv[0], trying again while it is open for writing: a process
// forked elsewhere holds our descriptors until it executes (golang/go#22315).
func forkExec(ctx context.Context, argv []string, attr *syscall.ProcAttr) (int, error) {
	for try := 0; ; try++ {
		pid, err := syscall.ForkExec(argv[0], argv, attr)
		if !errors.Is(err, syscall.ETXTBSY) || try == busyPauses || !pause(ctx, time.Millisecond<<try) {
			return pid, err //nolint:wrapcheck // the errno is what diagnose explains
		}
	}
}

// pause waits for d; false means that ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
