package worker

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/sandbox/process"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// longestVariable is the longest value the system passes on in one variable
// (128 KiB with name, equals sign and final zero).
const longestVariable = 128<<10 - len("TDF_INPUT=") - 1

// controlFile is the file in the private directory through which a program
// tells how far it has come.
const controlFile = ".tdf-control"

// program says how the program in dir is run.
func (r *round) program(dir string, s pipes) shim.Program {
	w := r.worker
	return shim.Program{
		Dir: dir, Args: r.words(),
		Env:   process.Environment(w.allow, w.environ, r.variables()),
		Files: [3]*os.File{nil, s.out.ForProgram(), s.err.ForProgram()},
		Grace: w.opts.KillGrace,
		Hurry: func() bool { return r.slot.hard.Load() || w.hurried.Load() },
	}
}

// variables tell the program who it is. TDF_INPUT is missing if the input is
// too long for a variable, TDF_DEADLINE if there is none, TDF_ENV if the worker
// offers none. Of each resource that the task asks for, gpu for example,
// TDF_RESOURCE_GPU says how much the round got and TDF_RESOURCE_GPU_IDS which
// pieces, counted from 0 and separated by commas; the latter is missing if the
// node has too many to tell them apart. TDF_ARGS and TDF_ARGS_DIR are there if the
// task needs others.
func (r *round) variables() map[string]string {
	t := r.task
	v := map[string]string{
		"TDF_TASK_ID":   strconv.FormatInt(t.ID, 10),
		"TDF_ROUND":     strconv.Itoa(t.Round),
		"TDF_WORKER":    r.worker.opts.Name,
		"TDF_NODE":      r.worker.opts.Node,
		"TDF_NAMESPACE": r.worker.opts.Store.Namespace(),
		"TDF_PROGRAM":   t.Program,
		"TDF_QUEUE":     t.Bucket.QueueName(),
		"TDF_PRIORITY":  strconv.Itoa(t.Bucket.Priority),
		"TDF_SLOT":      strconv.Itoa(r.slot.index),
		"TDF_WORKDIR":   r.private,
		"TDF_CONTROL":   filepath.Join(r.private, controlFile),
	}
	if env := r.worker.opts.Env; env != "" {
		v["TDF_ENV"] = env
	}
	allotted(v, t.Resources)
	if len(t.Needs) > 0 {
		v["TDF_ARGS"] = filepath.Join(r.private, argumentsFile)
		v["TDF_ARGS_DIR"] = filepath.Join(r.private, argumentsDir)
	}
	if len(t.Input) <= longestVariable {
		v["TDF_INPUT"] = t.Input
	}
	if deadline := t.Deadline(0); deadline != statemachine.Never {
		v["TDF_DEADLINE"] = deadline.Text()
	}
	return v
}

// allotted adds what the round got of its node. Which pieces of x it got is said
// last, should another resource be named x_ids.
func allotted(v map[string]string, got map[string]store.Allotted) {
	variable := func(name string) string { return "TDF_RESOURCE_" + strings.ToUpper(name) }
	for name, part := range got {
		v[variable(name)] = strconv.Itoa(part.Count)
	}
	for name, part := range got {
		if len(part.IDs) > 0 {
			v[variable(name)+"_IDS"] = joinInts(part.IDs)
		}
	}
}

func joinInts(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}

// fileName fills in a template of a file name. Program and worker have been
// checked to be no paths.
func (r *round) fileName(template string) string {
	return strings.NewReplacer(
		"$worker", r.worker.opts.Name,
		"$taskId", strconv.FormatInt(r.task.ID, 10),
		"$round", strconv.Itoa(r.task.Round),
		"$program", r.task.Program,
	).Replace(template)
}
