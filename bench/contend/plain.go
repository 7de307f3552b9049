package contend

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

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
