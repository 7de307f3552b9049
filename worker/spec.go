package worker

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/process"
	"github.com/tdf-go/tdf/internal/shim"
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
	args := r.task.Argv
	if args == nil {
		args = process.SplitInput(r.task.Input)
	}
	return shim.Program{
		Dir: dir, Args: args,
		Env:   process.Environment(w.allow, w.environ, r.variables()),
		Files: [3]*os.File{nil, s.out.ForProgram(), s.err.ForProgram()},
		Grace: w.opts.KillGrace,
		Hurry: func() bool { return r.slot.hard.Load() || w.hurried.Load() },
	}
}

// variables tell the program who it is. TDF_INPUT is missing if the input is
// too long for a variable, TDF_DEADLINE if there is none.
func (r *round) variables() map[string]string {
	t := r.task
	v := map[string]string{
		"TDF_TASK_ID":   strconv.FormatInt(t.ID, 10),
		"TDF_ROUND":     strconv.Itoa(t.Round),
		"TDF_WORKER":    r.worker.opts.Name,
		"TDF_NODE":      r.worker.opts.Node,
		"TDF_NAMESPACE": r.worker.opts.Store.Namespace(),
		"TDF_PROGRAM":   t.Program,
		"TDF_SLOT":      strconv.Itoa(r.slot.index),
		"TDF_WORKDIR":   r.private,
		"TDF_CONTROL":   filepath.Join(r.private, controlFile),
	}
	if len(t.Input) <= longestVariable {
		v["TDF_INPUT"] = t.Input
	}
	if deadline := t.Deadline(0); deadline != statemachine.Never {
		v["TDF_DEADLINE"] = deadline.Text()
	}
	return v
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
