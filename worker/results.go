package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tdf-go/tdf/internal/sandbox/control"
	"github.com/tdf-go/tdf/internal/sandbox/process"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

const (
	// longestArgument is the longest that the system passes on as one argument
	// (128 KiB with its final zero).
	longestArgument = 128<<10 - 1
	// longestArguments bounds the results among the arguments of one program, in
	// bytes. The system takes 2 MiB with the variables, unless the stack is limited.
	longestArguments = 1 << 20
	// resultsPage is how many results are read at once: Redis is blocked meanwhile.
	resultsPage = 50
)

// takeResults reads what the tasks that this one needs have brought, in the order
// of the needs. While Redis does not answer it tries again, until ctx is done.
func (r *round) takeResults(ctx context.Context) error {
	needs := r.Spec.Needs
	for len(r.results) < len(needs) {
		page := needs[len(r.results):]
		page = page[:min(len(page), resultsPage)]
		found, err := r.readResults(ctx, page)
		if err != nil {
			return err
		}
		for i, res := range found {
			if err := checkResult(page[i].Task, &res); err != nil {
				return err
			}
		}
		r.results = append(r.results, found...)
	}
	return nil
}

func (r *round) readResults(ctx context.Context, needs []task.Need) ([]task.Result, error) {
	var found []task.Result
	err := r.worker.reading.ask(ctx, func() (err error) {
		found, err = r.worker.opts.Backend.Results(ctx, idsOf(needs))
		return err
	})
	if err != nil {
		return nil, &ownError{"could not read the results that the task needs: " + err.Error()}
	}
	return found, nil
}

// idsOf are the tasks that are needed.
func idsOf(needs []task.Need) []int64 {
	ids := make([]int64, len(needs))
	for i, n := range needs {
		ids[i] = n.Task
	}
	return ids
}

// checkResult refuses what would be a wrong argument that nobody notices.
func checkResult(need int64, res *task.Result) error {
	switch {
	case res.End == "":
		return &ownError{fmt.Sprintf("task %d, which this one needs, is gone or has not ended: it has no result", need)}
	case res.Cut && res.End == statemachine.Succeeded:
		return &argumentError{fmt.Sprintf("the output of task %d, which this one needs, was cut at output_limit, so it is not a result: "+
			"let it write less, raise the limit, or write result= to $TDF_CONTROL", res.Task)}
	}
	return nil
}

// words are the arguments: what the task brings, then the results.
func (r *round) words() []string {
	words := r.Spec.Argv
	if words == nil {
		words = process.SplitInput(r.Spec.Input)
	}
	if !r.passesWords() {
		return words
	}
	words = slices.Clip(words)
	for i := range r.results {
		words = append(words, r.results[i].Text)
	}
	return words
}

// passesWords reports whether results are arguments too, and not only in files.
func (r *round) passesWords() bool { return r.Spec.Args != task.ArgsFiles }

// checkFields refuses what only a foreign client can have written: a program must not see another TDF_WORKER.
func (r *round) checkFields(names ...string) error {
	for _, name := range names {
		text, _ := r.Spec.Text(name)
		if _, err := task.Parse(name, text); err != nil {
			return &argumentError{err.Error()}
		}
	}
	return nil
}

// checkWords refuses results that the system does not pass on to a program.
func (r *round) checkWords() error {
	if !r.passesWords() {
		return nil
	}
	all := 0
	for i := range r.results {
		if err := checkWord(&r.results[i]); err != nil {
			return err
		}
		all += len(r.results[i].Text) + 1
	}
	if all > longestArguments {
		return &argumentError{fmt.Sprintf("the results of the tasks that this one needs cannot be arguments: they have %d bytes together, "+
			"and %d are passed on: %s", all, longestArguments, useFiles)}
	}
	return nil
}

func checkWord(res *task.Result) error {
	var why string
	switch {
	case len(res.Text) > longestArgument:
		why = fmt.Sprintf("it has %d bytes, and the system takes %d", len(res.Text), longestArgument)
	case strings.ContainsRune(res.Text, 0):
		why = "it contains a NUL byte"
	default:
		return nil
	}
	return &argumentError{fmt.Sprintf("the result of task %d cannot be an argument: %s: %s", res.Task, why, useFiles)}
}

const useFiles = "set args = files for this task, and read the files in $TDF_ARGS_DIR"

const (
	// argumentsDir is the directory in the private directory with a file for each
	// result that the task needs: 1, 2 and so on.
	argumentsDir = ".tdf-args"
	// argumentsFile is the file there that describes them all.
	argumentsFile = ".tdf-args.json"
)

// argument is a result in argumentsFile. A text that is no UTF-8, which JSON
// cannot say, is there as base64.
type argument struct {
	Task   int64   `json:"task"`
	State  string  `json:"state"`
	Result *string `json:"result,omitempty"`
	Base64 []byte  `json:"base64,omitempty"`
	Cut    bool    `json:"cut,omitempty"`
}

func argumentOf(res *task.Result) argument {
	a := argument{Task: res.Task, State: string(res.End), Cut: res.Cut}
	if utf8.ValidString(res.Text) {
		a.Result = &res.Text
	} else {
		a.Base64 = []byte(res.Text)
	}
	return a
}

// writeArguments puts the results that the task needs into its private directory, as
// the program's user: the directory belongs to that one, who must not be able to lead
// the worker anywhere else.
func (r *round) writeArguments() error {
	if len(r.Spec.Needs) == 0 {
		return nil
	}
	if err := r.worker.opts.container.AsOwner(r.fillArguments); err != nil {
		return fmt.Errorf("could not write the results that the task needs to its private directory: %w", err)
	}
	return nil
}

func (r *round) fillArguments() error {
	root, err := os.OpenRoot(r.private)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // the files in it are closed already
	text, err := r.describeArguments()
	if err == nil {
		err = plant(root, argumentsFile, text)
	}
	if err == nil {
		err = root.Mkdir(argumentsDir, 0o700)
	}
	for i := range r.results {
		if err != nil {
			break
		}
		err = plant(root, filepath.Join(argumentsDir, strconv.Itoa(i+1)), []byte(r.results[i].Text))
	}
	return err
}

// describeArguments is the content of argumentsFile.
func (r *round) describeArguments() ([]byte, error) {
	list := make([]argument, len(r.results))
	for i := range r.results {
		list[i] = argumentOf(&r.results[i])
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(list)
	return text.Bytes(), err
}

// plant writes a file for the program. It opens nothing that is there, such as a FIFO of
// another program of that user.
func plant(root *os.Root, name string, text []byte) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}

// readResult reads what the program said of its result in the control file. That it
// cannot be read is an error where others may need it.
func (r *round) readResult(file *control.Reader) error {
	text, ok, err := file.Result()
	if err != nil && r.Plan > 0 {
		return fmt.Errorf("no result: %w", err)
	}
	if err != nil {
		r.journal.add("control file: no result: " + err.Error())
	}
	if ok {
		r.said.Store(&text)
	}
	r.eta, r.status = file.ETA(), file.Status()
	return nil
}

// refuseCut makes a success a failure whose output was cut although the task forbids that, or other
// tasks need it. One that is added while this is reported finds the output cut itself.
func (r *round) refuseCut(ctx context.Context, end *ending) {
	res := &end.result
	forbidden := res.forbidden(r.Spec.OnCut)
	result := r.Plan > 0 && res.partial()
	if end.event != statemachine.Report || !forbidden && !result {
		return
	}
	if text, _ := end.errorText(r.Spec.FailOn); text == "" && (forbidden || r.hasDependants(ctx)) {
		end.fails(nil, &cutError{r.worker.opts.OutputLimit, r.whyCut(res, forbidden)})
	}
}

// forbidden reports whether a task with this on_cut forbids that so much of an output is kept nowhere.
func (res *result) forbidden(onCut string) bool { return onCut == task.OnCutFail && res.cut() != nil }

// partial reports whether what tasks that need this one would get is not all that it brought.
func (res *result) partial() bool { return res.stdout.Truncated && res.brought == nil }

// whyCut is why not all of an output is kept, where that is forbidden.
func (r *round) whyCut(res *result, forbidden bool) string {
	o := &r.worker.opts
	switch {
	case !forbidden:
		return ""
	case res.handled || o.OutputMax <= o.OutputLimit:
		return fmt.Sprintf("it is longer than output_limit (%d bytes)", o.OutputLimit)
	case max(res.stdout.Size, res.stderr.Size) > o.OutputMax:
		return fmt.Sprintf("it is longer than output_max (%d bytes)", o.OutputMax)
	default:
		return "not all of it could be kept (see the log of the task)"
	}
}

// hasDependants asks whether other tasks need this one, as long as ctx leaves time. Whoever
// does not know says no: those that need it will see that its output was cut.
func (r *round) hasDependants(ctx context.Context) bool {
	var found []map[string]string
	err := r.worker.reporting.ask(ctx, func() (err error) {
		found, err = r.worker.opts.Backend.Fields(ctx, []int64{r.Task.ID}, "feeds")
		return err
	})
	if err != nil {
		r.log.Warn(fmt.Sprintf("could not ask whether other tasks need task %d, whose output was cut", r.Task.ID), "error", err)
		return false
	}
	return found[0]["feeds"] == "1"
}
