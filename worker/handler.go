package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/task"
)

// Handler is a Go function that does what a program would do (Flock: task
// handler). A worker that has only handlers takes no task but those of its classes,
// which are the names of the handlers (see Options.Classes): give the tasks of a
// handler its name as [task.Spec].Class, or a queue of that class, so that other
// workers never see them. A task of its class and a program that it has no handler
// for it hands back, and the slot rests for 5 s.
//
// A handler should return soon after ctx is done; one that does not within
// KillGrace makes its slot stuck until it returns, and what it returns then is
// dropped. A function cannot be killed: while a stuck one goes on, its task may
// run again elsewhere. An error, or output on Stderr, makes the round a failure, under the
// task's fail_on. A panic is an error. An error with a method ExitCode() int, such
// as *exec.ExitError, gives the round that exit code if it is from 1 to 255, so
// that the task's retry_exit_codes and fatal_exit_codes apply.
type Handler func(ctx context.Context, job *Job) error

// Job is one round of a task for a Handler.
type Job struct {
	// Task is what a worker reads of the task: ID, Round, State, Rev, Plan and the
	// counters, and of its Spec Program, Source, Input, Argv, FailOn, Queue, Class,
	// Needs and Args; other fields are zero. ID and Round identify the round: a task may be
	// started more than once, each time in a round of its own. Program is the name
	// the handler is registered by, Input what the task brings.
	Task task.Task
	// Args are its words as a program would get them: with the texts of Results
	// behind them, unless the task has args = files.
	Args []string
	// Results are those of the tasks of its plan that this one needs, in the order in
	// which it names them.
	Results []task.Result
	// Resources is what the round got of its node, by name. It is not to be changed.
	Resources map[string]task.Allotted
	// Stdout and Stderr are recorded as a program's output is.
	Stdout, Stderr io.Writer
	// OutputLimit is how many bytes of each stream are stored, and the most that
	// SetResult takes; see Options.OutputLimit.
	OutputLimit int64

	round *round
}

// Progress tells how far the job has come: part from 0 to 1, and a few words.
// It is recorded within about a second.
func (j *Job) Progress(part float64, text string) {
	j.round.mu.Lock()
	defer j.round.mu.Unlock()
	j.round.told = told{progress: Progress{Part: min(max(part, 0), 1), Text: oneLine(text)}, fresh: true}
}

// stuckError says that a handler did not return.
type stuckError struct {
	program string
	grace   time.Duration
	ended   func(context.Context) bool
}

// Error names the handler.
func (e *stuckError) Error() string {
	return fmt.Sprintf("the handler of '%s' did not return within %s of being cancelled", e.program, e.grace)
}

// handle runs a handler to its end, or gives it up.
func (r *round) handle(ctx context.Context, h Handler) (result, error) {
	limit := r.worker.opts.OutputLimit
	live := &streams{capture.NewExcerpt(limit), capture.NewExcerpt(limit)}
	r.streams.Store(live)
	job := &Job{
		Task: taskOf(r.Claimed), Args: r.words(), Results: r.results, Resources: r.Resources,
		Stdout: live.out, Stderr: live.err, OutputLimit: limit, round: r,
	}
	done := make(chan error, 1)
	go func() {
		err := errNoReturn // runtime.Goexit runs deferred functions only
		defer func() { done <- err }()
		err = call(ctx, h, job)
	}()
	stopped, err := r.awaitHandler(ctx, done)
	res := result{Result: shim.Result{Started: true, ExitCode: exitCode(err)}, handled: true}
	res.stdout, res.stderr = live.out.Captured(), live.err.Captured()
	if stopped || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		res.Cause = shim.Cancelled
		if _, stuck := errors.AsType[*stuckError](err); !stuck && errors.Is(err, ctx.Err()) {
			err = nil // it has obeyed, which is no failure of its own
		}
	}
	said, tooLong := r.takeSaid()
	res.brought = said
	return res, errors.Join(err, tooLong)
}

// taskOf is what a handler gets to know of its task.
func taskOf(c *Claimed) task.Task {
	t := &c.Task
	return task.Task{
		ID: t.ID, State: t.State, Round: t.Round, Rev: t.Rev, Plan: c.Plan, Spec: c.Spec,
		Fails: t.Fails, Timeouts: t.Timeouts, Losses: t.Losses, Releases: t.Releases, Faults: t.Faults,
	}
}

// exitCode is the exit code that an error of a handler has, -1 for none.
func exitCode(err error) int {
	type coder interface {
		error
		ExitCode() int
	}
	if c, ok := errors.AsType[coder](err); ok && c.ExitCode() > 0 && c.ExitCode() < 256 {
		return c.ExitCode()
	}
	return -1
}

// call turns a panic of the handler into its error.
func call(ctx context.Context, h Handler, job *Job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			job.round.log.Error(fmt.Sprintf("panic in the handler of '%s': %v", job.Task.Program, p), "stack", string(debug.Stack()))
			err = fmt.Errorf("the handler of '%s' panicked: %v", job.Task.Program, p)
		}
	}()
	return h(ctx, job)
}

// awaitHandler waits for the handler, after ctx is done no longer than the grace,
// and reports whether ctx was done before it.
func (r *round) awaitHandler(ctx context.Context, done <-chan error) (stopped bool, err error) {
	select {
	case err := <-done:
		return false, err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return true, err
	case <-time.After(r.worker.opts.KillGrace):
	}
	return true, &stuckError{r.Spec.Program, r.worker.opts.KillGrace, func(ctx context.Context) bool {
		select {
		case <-done: //nolint:errcheck // what it returns is too late for its round
			return true
		case <-ctx.Done():
			return false
		}
	}}
}
