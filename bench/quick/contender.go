package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// program is what each task runs.
const program = "#!/bin/sh\necho \"$1\"\n"

// contender is one system that can run n tasks and say how long it took from the first submission to the last end.
type contender struct {
	name string
	run  func(ctx context.Context, n int) (time.Duration, error)
}

// references is how many of the contenders, the first ones, the others are compared with.
const references = 2

// contenders prepares all of them in dir.
func contenders(ctx context.Context, o options, dir string) ([]contender, error) {
	script := filepath.Join(dir, "run.sh")
	if err := os.WriteFile(script, []byte(program), 0o755); err != nil {
		return nil, fmt.Errorf("writing the program of the tasks: %w", err)
	}
	asynq, err := buildAsynq(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return nil, err
	}
	return []contender{
		xargs(script, o.parallel),
		asynq.contender("asynq, sh run.sh", "sh "+script),
		tdf{bin: bin, dir: dir, redis: o.redis, script: script, workers: o.parallel}.contender(),
		asynq.contender("asynq, handler does nothing", ""),
	}, nil
}
