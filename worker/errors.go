package worker

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/disk"
	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/internal/sandbox/process"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// ErrStarted is returned by a second Run of one Worker: make a new one.
var ErrStarted = errors.New("the worker has been started before")

// Why the context of a [Handler] is done, to be matched with errors.Is on
// context.Cause. The fourth reason is [ErrLeaseLost]: the task may run elsewhere
// already.
var (
	// ErrTimeout means that the time of the round is over: its timeout, or the
	// task's end_before.
	ErrTimeout = errors.New("the round's timeout is over")
	// ErrCancelled means that somebody has cancelled the task.
	ErrCancelled = errors.New("the task was cancelled")
	// ErrDraining means that the worker stops, and has waited for the handler as long
	// as its DrainTimeout says. The task is handed back.
	ErrDraining = errors.New("the worker stops")
	// errNoSlot is the reason for handing back a task for which no slot was free.
	errNoSlot = errors.New("no slot was free for it in time")
)

// Causes that match an exported one, and say more.
var (
	errEndBefore = &cause{"the task's end_before has passed", ErrTimeout}
	errLeaseOver = &cause{"the worker was cut off and its lease is over", ErrLeaseLost}
)

// cause is an error that is one of another kind.
type cause struct {
	text string
	kind error
}

// Error says what happened.
func (c *cause) Error() string { return c.text }

// Unwrap returns the kind.
func (c *cause) Unwrap() error { return c.kind }

// errNoReturn is the error of a handler that ended its goroutine.
var errNoReturn = errors.New("the handler ended its goroutine instead of returning")

// errOrdered is why a worker stops that an operator has stopped.
var errOrdered = errors.New("stopped by an operator")

// notOfferedError means that the task is for another worker.
type notOfferedError struct{ program, worker, lacks string }

// Error names program and worker.
func (e *notOfferedError) Error() string {
	return fmt.Sprintf("program '%s': worker '%s' %s", e.program, e.worker, e.lacks)
}

// ownError is a fault of this worker, not of the program or the host.
type ownError struct{ text string }

// Error says what went wrong.
func (e *ownError) Error() string { return e.text }

// argumentError is what is wrong with the results of other tasks as arguments.
type argumentError struct{ text string }

// Error says what is wrong, and the remedy.
func (e *argumentError) Error() string { return e.text }

// cutError is an output of which not all is there, although the task forbids that, or others need it.
type cutError struct {
	limit     int64
	forbidden string // why, if the task forbids it
}

// Error names the limit, and the remedy.
func (e *cutError) Error() string {
	if e.forbidden != "" {
		return "not all of the output is kept, and on_cut is fail: " + e.forbidden + "; raise the limit, or write less"
	}
	return fmt.Sprintf("the output was cut at output_limit (%d bytes), so it is not a result for the tasks that need it: "+
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

// classify is the one place that says what kind of failure a round was. stopped
// is why the worker ended it, nil if it did not; err is what went wrong beside
// the program. Of several kinds the one counts that explains the others.
func classify(stopped error, res *result, err error) statemachine.Class {
	_, own := errors.AsType[*ownError](err)
	_, output := errors.AsType[*capture.OutputError](err)
	switch {
	case errors.Is(stopped, ErrTimeout):
		return statemachine.ClassTime
	case own, errors.Is(err, shim.ErrShimLost):
		return statemachine.ClassInfrastructure
	case res.OutOfMemory:
		return statemachine.ClassMemory
	case res.Signal == syscall.SIGXCPU: // rlimit cpu
		return statemachine.ClassTime
	case res.Signal == syscall.SIGXFSZ, output && disk.Full(err): // rlimit fsize, or a file of the output
		return statemachine.ClassDisk
	case output, errors.Is(err, shim.ErrUnkillable):
		return statemachine.ClassHost
	case err != nil && !res.Started:
		return classifyStart(err)
	default:
		return statemachine.ClassProgram
	}
}

// declined is the class of a round that was handed back because this worker was not
// up to it, empty for one that was for another reason.
func declined(why error) statemachine.Class {
	if _, unable := errors.AsType[*hostError](why); unable {
		return statemachine.ClassShortage
	}
	if _, notOffered := errors.AsType[*notOfferedError](why); notOffered {
		return statemachine.ClassHandler
	}
	return ""
}

// classifyStart is for a program that did not run at all. What would fail on
// any host is the program's own fault.
func classifyStart(err error) statemachine.Class {
	if start, ok := errors.AsType[*process.StartError](err); ok {
		switch start.Reason {
		case process.ReasonSpec, process.ReasonMissing, process.ReasonNotFile, process.ReasonNotExecutable,
			process.ReasonFormat, process.ReasonArguments:
			return statemachine.ClassProgram
		default: // an interpreter that is not installed here, a wrapper, a user, no memory
			return statemachine.ClassHost
		}
	}
	if _, arguments := errors.AsType[*argumentError](err); arguments {
		return statemachine.ClassProgram
	}
	_, fetching := errors.AsType[*fetchingError](err)
	switch {
	case !fetching, disk.Full(err):
		return statemachine.ClassHost
	case errors.Is(err, task.ErrInvalidProgram), errors.Is(err, task.ErrInvalidSource),
		errors.Is(err, task.ErrInvalidFormat), errors.Is(err, fetch.ErrNotRunnable):
		return statemachine.ClassProgram
	default:
		return statemachine.ClassFetch
	}
}

// news is what the end of a round says of its node. A round that somebody else
// ended says nothing, and a fault of TDF or of another task not either.
func (e *ending) news(failed bool) NodeNews {
	_, unable := errors.AsType[*hostError](e.why)
	switch {
	case unable:
		return NodeBad
	case e.event == statemachine.HandBack, e.event == statemachine.Terminate, e.foreign,
		failed && e.class == statemachine.ClassInfrastructure:
		return ""
	case failed:
		return NodeBad
	default:
		return NodeGood
	}
}
