package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/bench/contend"
	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/internal/sandbox/control"
	"github.com/tdf-go/tdf/internal/sandbox/process"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/sandbox/workdir"
)

// crew are the slots of a worker without the worker: what a round costs beside Redis, the queue and the log.
type crew struct {
	container    *shim.Container
	script, temp string
	slots        int
}

// outputLimit is the default of [worker] output_limit.
const outputLimit = 1 << 20

func (c *crew) contender() contend.Contender {
	return contend.Contender{Name: "shim, " + c.container.Describe(), Run: c.run}
}

// place is one slot.
type place struct {
	*shim.Slot
	index int
	spare workdir.Spare
}

// run starts the shims before the clock starts, and tells them of a lease: both stay for many rounds of a worker.
func (c *crew) run(ctx context.Context, n int) (took time.Duration, err error) {
	all := make([]*place, 0, c.slots)
	defer func() {
		for _, p := range all {
			err = errors.Join(err, p.Close(), p.spare.Remove())
		}
	}()
	for i := range c.slots {
		s, err := c.container.Start(i)
		if err != nil {
			return 0, err
		}
		all = append(all, &place{Slot: s, index: i})
		if err := s.Extend(shim.Now().Add(time.Hour)); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	err = contend.Share(ctx, c.slots, n, func(ctx context.Context, slot, task int) error { return c.round(ctx, all[slot], task) })
	return time.Since(start), err
}

// round does what a worker does for each round of a program.
func (c *crew) round(ctx context.Context, p *place, task int) error {
	prefix := filepath.Join(c.temp, "round.")
	private, made, err := p.spare.Take(prefix)
	if err != nil {
		if private, err = os.MkdirTemp(c.temp, "round.*"); err == nil {
			made, err = workdir.Look(private)
		}
	}
	if err != nil {
		return err
	}
	out, err := c.execute(ctx, p, private, task)
	if !p.spare.Keep(private, prefix+"spare.", made) {
		err = errors.Join(err, os.RemoveAll(private))
	}
	if err != nil {
		return err
	}
	return contend.CheckOutput(c.container.Describe(), task, out)
}

// execute runs the program as the worker does and returns what it wrote.
func (c *crew) execute(ctx context.Context, p *place, private string, task int) ([]byte, error) {
	out, err := capture.Open(capture.Options{Limit: outputLimit, Stream: "stdout"})
	if err != nil {
		return nil, err
	}
	aside, err := capture.Open(capture.Options{Limit: outputLimit, Stream: "stderr"})
	if err != nil {
		_, closeErr := out.Finish()
		return nil, errors.Join(err, closeErr)
	}
	word, file := strconv.Itoa(task), filepath.Join(private, ".tdf-control")
	result, err := p.Run(ctx, shim.Program{
		Dir: filepath.Dir(c.script), Args: process.SplitInput(word), Env: environment(p.index, word, private, file),
		Files: [3]*os.File{nil, out.ForProgram(), aside.ForProgram()}, Grace: time.Second,
	})
	_, _, controlErr := (&control.Reader{Path: file}).Poll()
	stdout, outErr := out.Finish()
	stderr, asideErr := aside.Finish()
	if err = errors.Join(err, controlErr, outErr, asideErr); err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("task %d: %+v: %s", task, result, stderr.Data)
	}
	return stdout.Data, err
}

// environment is as large as that of a worker's rounds.
func environment(slot int, task, private, file string) []string {
	return process.Environment(process.DefaultAllow(), os.Environ(), map[string]string{
		"TDF_TASK_ID": task, "TDF_ROUND": "0", "TDF_WORKER": "worker-1", "TDF_NODE": "node-1", "TDF_NAMESPACE": "quick",
		"TDF_PROGRAM": "program", "TDF_SLOT": strconv.Itoa(slot), "TDF_INPUT": task,
		"TDF_WORKDIR": private, "TDF_CONTROL": file,
	})
}
