package worker

import (
	"errors"
	"fmt"

	"github.com/tdf-go/tdf/internal/store"
)

// ErrStarted is returned by a second Run of one Worker: make a new one.
var ErrStarted = errors.New("the worker has been started before")

// ErrNameTaken means that another worker of the same name is alive.
var ErrNameTaken = store.ErrNameTaken

// Why a round's context ended.
var (
	errOverdue   = errors.New("the round's timeout is over")
	errEndBefore = errors.New("the task's end_before has passed")
	errDrained   = errors.New("the worker stops")
	errLeaseOver = errors.New("the worker was cut off and its lease is over")
	errCancelled = errors.New("the task was cancelled")
)

// errNoReturn is the error of a handler that ended its goroutine.
var errNoReturn = errors.New("the handler ended its goroutine instead of returning")

// errOrdered is why a worker stops that an operator has stopped.
var errOrdered = errors.New("stopped by an operator")

// notOfferedError means that the task is for another worker.
type notOfferedError struct{ program, worker string }

// Error names program and worker.
func (e *notOfferedError) Error() string {
	return fmt.Sprintf("program '%s': worker '%s' has no handler of that name and runs no programs", e.program, e.worker)
}

// ownError is a fault of this worker, not of the program or the host.
type ownError struct{ text string }

// Error says what went wrong.
func (e *ownError) Error() string { return e.text }

// argumentError is what is wrong with the results of other tasks as arguments.
type argumentError struct{ text string }

// Error says what is wrong, and the remedy.
func (e *argumentError) Error() string { return e.text }

// cutError is an output of which not all is there, although others need it.
type cutError struct{ limit int64 }

// Error names the limit, and the remedy.
func (e *cutError) Error() string {
	return fmt.Sprintf("the output was cut at output_limit (%d bytes), so it is no result for the tasks that need it: "+
		"raise the limit, or write result= to $TDF_CONTROL (a handler: Job.SetResult)", e.limit)
}

// fetchingError marks what went wrong while a program was fetched.
type fetchingError struct{ err error }

// Error is that of the cause.
func (e *fetchingError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *fetchingError) Unwrap() error { return e.err }

// hostError is a fault of this host, which no task has to pay for.
type hostError struct{ err error }

// Error says that the worker is not to blame the program.
func (e *hostError) Error() string { return "this host cannot run programs: " + e.err.Error() }

// Unwrap returns the fault.
func (e *hostError) Unwrap() error { return e.err }

// OptionError says which field of [Options] is wrong and what would be right.
type OptionError struct {
	Field  string
	Value  any
	Remedy string
}

// Error names field, value and remedy.
func (e *OptionError) Error() string {
	return fmt.Sprintf("worker option %s = %v: %s", e.Field, e.Value, e.Remedy)
}
