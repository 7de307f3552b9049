package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tdf-go/tdf/internal/sandbox/capture"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/statemachine"
)

// What the error field says of a round that was stopped.
const (
	stoppedOverdue   = "TERMINATED - execution timed out..."
	stoppedEndBefore = "TERMINATED - end_before has passed"
	stoppedCancelled = "TERMINATED - cancelled"
)

// The values of a task's fail_on; any other one is the default: what stands on
// stderr or, if that is empty, a bad exit.
const (
	failOnStderr = "stderr"
	failOnExit   = "exit"
)

// result is what a program or handler did.
type result struct {
	shim.Result
	stdout, stderr capture.Captured
	program        string  // hash of the program
	brought        *string // its result, if it said one
	handled        bool    // by a handler, whose error says what its exit code means
}

// notRun is the result of a program that was not started.
func notRun() result { return result{Result: shim.Result{ExitCode: -1}} }

// ending is how a round ended: what to tell Redis, and what to record.
type ending struct {
	event  statemachine.Event
	result result
	// trouble is what a step of the worker has to say; not empty, it makes the
	// round a failure whatever the program did.
	trouble string
	// class is the kind of failure, if it was one.
	class statemachine.Class
	// foreign is set if other tasks are to blame, whose results cannot be used.
	foreign bool
	// why the task is handed back, for HandBack.
	why error
	// stuck is set if what ran may still run: it waits a while and reports
	// whether that has ended.
	stuck func(context.Context) bool
}

// judge says what a result means. Why ctx is done decides what becomes of a
// round that was stopped.
func (r *round) judge(ctx context.Context, res *result, err error) ending {
	if !res.Started && short(err) {
		err = &hostError{err}
	}
	end := ending{event: statemachine.Report, result: *res}
	end.fails(nil, err)
	_, end.foreign = errors.AsType[*argumentError](err)
	end.stuck = r.stillRuns(err)
	cause := context.Cause(ctx)
	stopped := res.Cause == shim.Cancelled || res.Cause == shim.Killed || end.stuck != nil || !res.Started ||
		errors.Is(err, shim.ErrShimLost)
	switch {
	case errors.As(err, new(*hostError)), errors.As(err, new(*notOfferedError)):
		end.event, end.why = statemachine.HandBack, err
	case res.Cause == shim.LeaseOver: // by the shim, while this process was frozen
		end.event, end.why = statemachine.HandBack, errLeaseOver
	case cause == nil || !stopped:
	case errors.Is(cause, errOverdue):
		end.event = statemachine.StopOverdue
		end.fails(cause, err, stoppedOverdue)
	case errors.Is(cause, errEndBefore):
		end.fails(cause, err, stoppedEndBefore)
	case errors.Is(cause, errCancelled):
		end.event = statemachine.Terminate
		end.fails(cause, err, stoppedCancelled)
	default:
		end.event, end.why = statemachine.HandBack, cause
	}
	return end
}

// stillRuns waits for what may still run after an error, and reports whether that has ended; nil if nothing may.
func (r *round) stillRuns(err error) func(context.Context) bool {
	if stuck, ok := errors.AsType[*stuckError](err); ok {
		return stuck.ended
	}
	if errors.Is(err, shim.ErrUnkillable) {
		return r.slot.unkillable
	}
	return nil
}

// fails notes what went wrong beside the program, and the class that the round
// has if it turns out to be a failure. stopped is why the worker ended it, nil if
// it did not, and lines are what is to be said of that.
func (e *ending) fails(stopped, err error, lines ...string) {
	e.trouble, e.class = "", classify(stopped, &e.result, err)
	if err != nil {
		e.trouble = err.Error()
	}
	for _, line := range lines {
		e.trouble = withLine(e.trouble, line)
	}
}

// errorText is the round's error, empty for a success. aside is what the
// program wrote to stderr where that is no error.
func (e *ending) errorText(failOn string) (text, aside string) {
	text = string(e.result.stderr.Data)
	bad := badExit(&e.result)
	switch {
	case failOn == failOnExit && bad == "" && e.trouble == "":
		return "", text
	case failOn != failOnStderr && text == "":
		text = bad
	}
	if e.trouble != "" {
		text = withLine(text, e.trouble)
	}
	return text, ""
}

// badExit says how a program ended that did not end well by itself.
func badExit(res *result) string {
	switch {
	case !res.Started || res.Cause != shim.Ended || res.handled:
		return ""
	case res.OutOfMemory:
		return "out of memory: memory_max was reached"
	case res.Signal != 0:
		return fmt.Sprintf("killed by signal %s", res.Signal)
	case res.ExitCode > 0:
		return fmt.Sprintf("exit status %d", res.ExitCode)
	default:
		return ""
	}
}

// withLine appends a line to a text that may lack a line end.
func withLine(text, line string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line
}
