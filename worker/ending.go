package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tdf-go/tdf/internal/process"
	"github.com/tdf-go/tdf/statemachine"
)

// What the error field says of a round that was stopped.
const (
	stoppedOverdue   = "TERMINATED - execution timed out..."
	stoppedEndBefore = "TERMINATED - end_before has passed"
)

// The values of a task's fail_on; any other one is the default: what stands on
// stderr or, if that is empty, a bad exit.
const (
	failOnStderr = "stderr"
	failOnExit   = "exit"
)

// ending is how a round ended: what to tell Redis, and what to record.
type ending struct {
	event  statemachine.Event
	result process.Result
	// trouble is what a step of the worker has to say; not empty, it makes the
	// round a failure whatever the program did.
	trouble string
	// fatal means that the worker has to end after its report.
	fatal error
}

// judge says what a result means. Why ctx is done decides what becomes of a
// round that was stopped.
func (r *round) judge(ctx context.Context, result *process.Result, err error) ending {
	end := ending{event: statemachine.Report, result: *result}
	if err != nil {
		end.trouble = err.Error()
	}
	if errors.Is(err, process.ErrUnkillable) {
		end.fatal = err
	}
	neverRan := err != nil && result.Started.IsZero()
	if ctx.Err() == nil || (!result.Cancelled && !neverRan) {
		return end
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errOverdue):
		end.event, end.trouble = statemachine.StopOverdue, withLine(end.trouble, stoppedOverdue)
	case errors.Is(cause, errEndBefore):
		end.trouble = withLine(end.trouble, stoppedEndBefore)
	default:
		end.event = statemachine.HandBack
	}
	return end
}

// errorText is the round's error, empty for a success. aside is what the
// program wrote to stderr where that is no error.
func (e *ending) errorText(failOn string) (text, aside string) {
	text = string(e.result.Stderr)
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
func badExit(res *process.Result) string {
	switch {
	case res.Started.IsZero() || res.Cancelled:
		return ""
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
