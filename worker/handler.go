package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/sandbox/shim"
)

// Handler is a Go function that does what a program would do. A worker with
// handlers alone takes only the tasks of its classes, which are the names of the
// handlers (see Options.Classes): give the tasks of a handler its name as
// [task.Spec].Class, or a queue of that class, so that other workers never see
// them. It hands back a task of its classes whose program has no handler, and the
// slot rests for 5 s.
//
// A handler should return soon after ctx is done; context.Cause says why it is: the
// error matches [ErrTimeout], [ErrCancelled], [ErrDraining] or [ErrLeaseLost]. One that does not within
// KillGrace makes its slot stuck until it returns, and what it returns then is
// dropped. A function cannot be killed: while a stuck one goes on, its task may
// run again elsewhere. An error, or output on Stderr, makes the round a failure, under the
// task's fail_on. A panic is an error, and its stack is recorded. How often a task is tried again is up to its
// max_fails: by default not at all, in plans five times. [Permanent] and [RetryAfter]
// say more about an error, and [HandBack] is one that is no failure. An error with a
// method ExitCode() int, such as *exec.ExitError, gives the round that exit code if it
// is from 1 to 255, so that the task's retry_exit_codes and fatal_exit_codes apply.
type Handler func(ctx context.Context, job *Job) error

// wrapped are the handlers in their middleware.
func (o *Options) wrapped() map[string]Handler {
	wrapped := maps.Clone(o.Handlers)
	for name, h := range wrapped {
		if h == nil { // is as none
			continue
		}
		for _, wrap := range slices.Backward(o.Middleware) {
			h = wrap(h)
		}
		wrapped[name] = h
	}
	return wrapped
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
	job := r.job()
	done := make(chan error, 1)
	go func() {
		err := errNoReturn // runtime.Goexit runs deferred functions only
		defer func() { done <- err }()
		err = call(ctx, h, job)
	}()
	stopped, err := r.awaitHandler(ctx, done)
	res := result{Result: shim.Result{Started: true, ExitCode: exitCode(err)}, handled: true}
	live := job.written()
	res.stdout, res.stderr = live.out.Captured(), live.err.Captured()
	if stopped || ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		res.Cause = shim.Cancelled
		if errors.Is(err, ctx.Err()) && !errors.As(err, new(*stuckError)) && !errors.As(err, new(*handBackError)) {
			err = nil // it has obeyed, which is no failure of its own
		}
	}
	var tooLong error
	res.brought, tooLong = job.result()
	return res, errors.Join(err, tooLong)
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
			stack := debug.Stack()
			job.Logger().Error(fmt.Sprintf("panic in the handler of '%s': %v", job.Task.Program, p), "stack", string(stack))
			err = &panicError{fmt.Sprintf("the handler of '%s' panicked: %v", job.Task.Program, p), stack}
		}
	}()
	return h(ctx, job)
}

// panicError is the panic of a handler.
type panicError struct {
	text  string
	stack []byte
}

// Error names the handler, and what it panicked with.
func (e *panicError) Error() string { return e.text }

// longestTrace is how much of a stack is recorded, in bytes.
const longestTrace = 8 << 10

// trace is the stack of what panicked, without the frames of the recovery.
func trace(stack []byte) string {
	if _, below, ok := bytes.Cut(stack, []byte("\npanic(")); ok {
		for range 2 { // its arguments, and where it is
			_, below, _ = bytes.Cut(below, []byte("\n"))
		}
		stack = below
	}
	if len(stack) > longestTrace {
		stack = stack[:bytes.LastIndexByte(stack[:longestTrace], '\n')+1]
	}
	return string(stack)
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
