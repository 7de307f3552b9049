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

// writeProgram makes the program of the tasks in a directory of its own.
func writeProgram(dir string) (script string, err error) {
	script = filepath.Join(dir, "program", "run.sh")
	if err := os.MkdirAll(filepath.Dir(script), 0o755); err != nil {
		return "", fmt.Errorf("directory for the program of the tasks: %w", err)
	}
	if err := os.WriteFile(script, []byte(program), 0o755); err != nil {
		return "", fmt.Errorf("writing the program of the tasks: %w", err)
	}
	return script, nil
}

// systems are TDF and its peers, each with all it needs, in dir.
func systems(ctx context.Context, o options, dir, script string) ([]contender, error) {
	asynq, err := buildAsynq(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return nil, err
	}
	all := []contender{
		xargs(o.parallel, script),
		asynq.contender("asynq, sh run.sh", "sh "+script),
	}
	for _, layer := range o.layers {
		one := tdf{bin: bin, dir: dir, redis: o.redis, script: script, workers: 1, slots: o.parallel, containment: layer}
		all = append(all, one.contender())
	}
	many := tdf{bin: bin, dir: dir, redis: o.redis, script: script, workers: o.parallel, slots: 1, containment: o.layers[0]}
	return append(all, many.contender(), asynq.contender("asynq, handler does nothing", "")), nil
}
