package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// asynq is the built program of bench/peers/asynq.
type asynq struct {
	binary, redis string
	parallel      int
}

// buildAsynq compiles it into dir.
func buildAsynq(ctx context.Context, o options, dir string) (asynq, error) {
	binary := filepath.Join(dir, "asynq")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "./asynq")
	cmd.Dir = o.peers
	if out, err := cmd.CombinedOutput(); err != nil {
		return asynq{}, fmt.Errorf("building %s/asynq: %w\n%s", o.peers, err, out)
	}
	return asynq{binary, o.redis, o.parallel}, nil
}

// contender runs every task as command; an empty one leaves the handler without work.
func (a asynq) contender(name, command string) contender {
	run := func(ctx context.Context, n int) (time.Duration, error) {
		cmd := exec.CommandContext(ctx, a.binary, "-redis", a.redis, "-tasks", strconv.Itoa(n),
			"-concurrency", strconv.Itoa(a.parallel), "-command", command)
		out, err := cmd.Output()
		if err != nil {
			return 0, fmt.Errorf("%s: %w%s", name, err, stderrOf(err))
		}
		var rep struct {
			Enqueue float64 `json:"enqueue_seconds"`
			Process float64 `json:"process_seconds"`
		}
		if err := json.Unmarshal(out, &rep); err != nil {
			return 0, fmt.Errorf("%s: its report %q: %w", name, out, err)
		}
		return time.Duration((rep.Enqueue + rep.Process) * float64(time.Second)), nil
	}
	return contender{name, run}
}

// stderrOf returns what a failed command said.
func stderrOf(err error) string {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return ": " + string(exit.Stderr)
	}
	return ""
}
