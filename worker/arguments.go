package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/sandbox/process"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
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

// Result is what a task of a plan has brought that another one needs (zk-plan:
// argument).
type Result struct {
	// Task is its id; of one that was retried, that of the retry.
	Task int64
	// State is how it ended: statemachine.Succeeded, unless the plan or the need
	// allows for something else.
	State statemachine.State
	// Text is what it wrote as result= to $TDF_CONTROL or said by [Job.SetResult], or
	// else its output without the newline at the end.
	Text string
	// Cut says that Text is not all of its output, which only happens if it did not
	// succeed.
	Cut bool
}

// takeResults reads what the tasks that this one needs have brought, in the order
// of the needs. While Redis does not answer it tries again, until ctx is done.
func (r *round) takeResults(ctx context.Context) error {
	needs := r.task.Needs
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
			r.results = append(r.results, Result{Task: res.Task, State: res.End, Text: res.Text, Cut: res.Cut})
		}
	}
	return nil
}

func (r *round) readResults(ctx context.Context, needs []store.Need) ([]store.Result, error) {
	ids := make([]int64, len(needs))
	for i, n := range needs {
		ids[i] = n.Task
	}
	lane := r.worker.reading
	for {
		found, err := r.worker.opts.Store.Results(ctx, ids)
		if err == nil {
			lane.answered()
			return found, nil
		}
		if ctx.Err() != nil || !errors.Is(err, store.ErrUnreachable) {
			return nil, &ownError{"could not read the results that the task needs: " + err.Error()}
		}
		timing.Pause(ctx, lane.failed(err))
	}
}

// checkResult refuses what would be a wrong argument that nobody notices.
func checkResult(need int64, res *store.Result) error {
	switch {
	case res.End == "":
		return &ownError{fmt.Sprintf("task %d, which this one needs, is gone or has not ended: it has no result", need)}
	case res.Cut && res.End == statemachine.Succeeded:
		return &argumentError{fmt.Sprintf("the output of task %d, which this one needs, was cut at output_limit, so it is no result: "+
			"let it write less, raise the limit, or write result= to $TDF_CONTROL", res.Task)}
	}
	return nil
}

// words are the arguments: what the task brings, then the results.
func (r *round) words() []string {
	words := r.task.Argv
	if words == nil {
		words = process.SplitInput(r.task.Input)
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
func (r *round) passesWords() bool { return r.task.ArgsAs != store.ArgsFiles }

// checkWords refuses results that the system does not pass on to a program.
func (r *round) checkWords() error {
	if !r.passesWords() {
		return nil
	}
	all := 0
	for i := range r.results {
		if err := r.results[i].checkWord(); err != nil {
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

func (res *Result) checkWord() error {
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
