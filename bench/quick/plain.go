package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// plain starts the script from Go as one does who contains nothing: no session, no private directory, whatever stays
// behind stays.
func plain(parallel int, script string) contender {
	do := func(ctx context.Context, _, task int) error {
		cmd := exec.CommandContext(ctx, "./"+filepath.Base(script), strconv.Itoa(task))
		cmd.Dir = filepath.Dir(script)
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("plain exec: %w%s", err, stderrOf(err))
		}
		return checkOutput("plain exec", task, out)
	}
	run := func(ctx context.Context, n int) (time.Duration, error) {
		start := time.Now()
		err := share(ctx, parallel, n, do)
		return time.Since(start), err
	}
	return contender{"Go, contains nothing", run}
}

func checkOutput(who string, task int, out []byte) error {
	if want := strconv.Itoa(task) + "\n"; string(out) != want {
		return fmt.Errorf("%s: task %d: output %q, not %q", who, task, out, want)
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
