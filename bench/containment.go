package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/internal/sandbox/control"
	"github.com/tdf-go/tdf/internal/sandbox/process"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/sandbox/workdir"
)

const uncontainedName = "Go, contains nothing"

// layers of containment, strongest first.
func layers() []shim.Layer { return []shim.Layer{shim.PIDNamespace, shim.Cgroup, shim.Group} }

// containment measures what each layer of containment costs.
func (b *bench) containment(ctx context.Context) ([]Table, error) {
	script, err := writeProgram(b.dir)
	if err != nil {
		return nil, err
	}
	all := []*contender{b.xargs(ctx, script), b.plain(uncontainedName, script)}
	xargs := all[0].name
	var targets []target
	for _, layer := range layers() {
		name := "shim, " + string(layer)
		container, err := openContainer(layer)
		if err != nil {
			all = append(all, &contender{name: name, absent: err.Error()})
			continue
		}
		defer func() { _ = container.Close() }()
		all = append(all, b.timed(name, (&slots{container: container, script: script, temp: b.dir, n: b.Slots, kind: left}).run))
		aim := 0.6
		if layer == shim.PIDNamespace {
			aim = 0.8
		}
		targets = append(targets, target{name, xargs, rate, 0.6, aim})
	}
	return b.compare(ctx, all, comparison{
		Table: Table{
			Name: "containment", Title: fmt.Sprintf("Cost of containment, without Redis: %d tasks, %d at a time", b.Tasks, b.Slots),
			Metrics: []Metric{rate, cpuMillis}, Reference: xargs,
		},
		ratios: []Metric{rate, cpuMillis}, targets: targets,
	})
}

// openContainer makes sure that it is that layer and no weaker one.
func openContainer(layer shim.Layer) (*shim.Container, error) {
	return shim.New(shim.Options{Want: layer, Require: true, Name: "bench-" + strconv.Itoa(os.Getpid()) + "-" + string(layer)})
}

// slots are those of a worker without the worker: what a round costs beside Redis, the queue and the log.
type slots struct {
	container    *shim.Container
	script, temp string
	n            int
	kind         directory
	tree         *workdir.Tree // of the program
}

// outputLimit is the default of [worker] output_limit.
const outputLimit = 1 << 20

// place is one slot.
type place struct {
	*shim.Slot
	index int
	dir   workdir.Dir
}

// run starts the shims before the clock starts, and tells them of a lease: both stay for many rounds of a worker.
func (c *slots) run(ctx context.Context, n int) (took time.Duration, err error) {
	if c.tree, err = workdir.Read(filepath.Dir(c.script), nil); err != nil {
		return 0, err
	}
	all := make([]*place, 0, c.n)
	defer func() {
		for _, p := range all {
			err = errors.Join(err, p.Close(), os.RemoveAll(p.dir.Path()))
		}
	}()
	for i := range c.n {
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
	err = share(ctx, c.n, n, func(ctx context.Context, slot, task int) error { return c.round(ctx, all[slot], task) })
	return time.Since(start), err
}

// round does what a worker does for each round of a program.
func (c *slots) round(ctx context.Context, p *place, task int) error {
	program, err := c.makeDirectory(p)
	if err != nil {
		return err
	}
	out, err := c.execute(ctx, p, program, task)
	if err = errors.Join(err, c.endDirectory(p, program.Dir)); err != nil {
		return err
	}
	return checkOutput(task, out)
}

// execute runs the program as the worker does and returns what it wrote.
func (c *slots) execute(ctx context.Context, p *place, program shim.Program, task int) ([]byte, error) {
	out, err := capture.Open(capture.Options{Limit: outputLimit, Stream: "stdout"})
	if err != nil {
		return nil, err
	}
	aside, err := capture.Open(capture.Options{Limit: outputLimit, Stream: "stderr"})
	if err != nil {
		_, closeErr := out.Finish()
		return nil, errors.Join(err, closeErr)
	}
	word, file := strconv.Itoa(task), filepath.Join(program.Dir, ".tdf-control")
	program.Args, program.Env = process.SplitInput(word), environment(p.index, word, program.Dir, file)
	program.Output, program.Grace = [2]shim.Taker{out, aside}, time.Second
	result, err := p.Run(ctx, program)
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
		"TDF_TASK_ID": task, "TDF_ROUND": "0", "TDF_WORKER": "worker-1", "TDF_NODE": "node-1", "TDF_NAMESPACE": "bench",
		"TDF_PROGRAM": "program", "TDF_SLOT": strconv.Itoa(slot), "TDF_INPUT": task,
		"TDF_WORKDIR": private, "TDF_CONTROL": file,
	})
}
