package worker

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/process"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// longestVariable is the longest value the system passes on in one variable
// (128 KiB with name, equals sign and final zero).
const longestVariable = 128<<10 - len("TDF_INPUT=") - 1

// spec says how the program in dir is run.
func (r *round) spec(dir, private string) process.Spec {
	o := &r.worker.opts
	args := r.task.Argv
	if args == nil {
		args = process.SplitInput(r.task.Input)
	}
	return process.Spec{
		Dir: dir, Args: args,
		Env:    process.Environment(r.worker.allow, r.worker.environ, r.variables(private)),
		Stdout: r.fileName(o.OutputFile), Stderr: r.fileName(o.ErrorFile),
		TempDir: o.TempDir, Grace: o.KillGrace, OutputLimit: o.OutputLimit,
	}
}

// variables tell the program who it is. TDF_INPUT is missing if the input is
// too long for a variable, TDF_DEADLINE if there is none.
func (r *round) variables(private string) map[string]string {
	t := r.task
	v := map[string]string{
		"TDF_TASK_ID":   strconv.FormatInt(t.ID, 10),
		"TDF_ROUND":     strconv.Itoa(t.Round),
		"TDF_WORKER":    r.worker.opts.Name,
		"TDF_NAMESPACE": r.worker.opts.Store.Namespace(),
		"TDF_PROGRAM":   t.Program,
		"TDF_SLOT":      "0",
		"TDF_WORKDIR":   private,
	}
	if len(t.Input) <= longestVariable {
		v["TDF_INPUT"] = t.Input
	}
	if deadline := min(t.Current.Running.Add(t.Timeout), t.EndBefore); deadline != statemachine.Never {
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

// makePrivate makes a directory for one round that only this user can enter.
func (w *Worker) makePrivate(t *store.Claimed) (string, error) {
	dir, err := os.MkdirTemp(w.opts.TempDir, fmt.Sprintf("tdf-%d-%d-*", t.ID, t.Round))
	if err != nil {
		return "", fmt.Errorf("could not make the private directory of the round at worker '%s': %w", w.opts.Name, err)
	}
	return dir, nil
}

// removePrivate removes the directory, also where the program has left parts
// of it read-only, as module caches are.
func (r *round) removePrivate(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	err := makeWritable(dir)
	if removeErr := os.RemoveAll(dir); removeErr != nil {
		r.log.Warn().Err(removeErr).AnErr("chmod", err).
			Msgf("could not remove the private directory of task %d", r.task.ID)
	}
}

// makeWritable opens all directories below dir; it follows no link.
func makeWritable(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open private directory: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing is written through it
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return root.Chmod(name, 0o700)
	})
	if err != nil {
		return fmt.Errorf("make private directory writable: %w", err)
	}
	return nil
}
