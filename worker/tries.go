package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
)

// Permanent marks an error of a [Handler] that another try cannot mend, such as an
// invalid input. The round fails, and the task is not tried again, whatever its spec
// says. An error that wraps it is permanent too. Permanent of nil is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// RetryAfter marks an error of a [Handler] that another try may mend in d, for
// instance where a service has said so. The round fails. If the spec of the task
// allows another try, that begins d from now at the earliest, instead of after the
// retry_delay of the spec; at once if d is 0 or less. The mark holds in an error that
// wraps it too; one in [Permanent] counts before it. RetryAfter of nil is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryError{err, d}
}

// HandBack is the error of a [Handler] that gives its task back unharmed: a worker,
// this one or another, takes it again, d from now at the earliest. That is no
// failure, and no limit of the task counts it. What the handler has written is not
// recorded. The round is, each time: let a task that waits ask for minutes, not
// milliseconds. HandBack(0) is for what another worker can do at once; where none
// can, it is a busy loop. An error that wraps it hands back too, and says why in
// the log of the task; it counts before [Permanent] and [RetryAfter].
func HandBack(d time.Duration) error { return &handBackError{d} }

type permanentError struct{ err error }

// Error is that of the cause.
func (e *permanentError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *permanentError) Unwrap() error { return e.err }

type retryError struct {
	err   error
	after time.Duration
}

// Error is that of the cause.
func (e *retryError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *retryError) Unwrap() error { return e.err }

type handBackError struct{ after time.Duration }

// Error says when the task may be taken again.
func (e *handBackError) Error() string {
	if e.after <= 0 {
		return "its handler hands it back"
	}
	return fmt.Sprintf("its handler hands it back for %s", e.after)
}

// nextTry is what the error of a handler says at the moment now of the round after
// this one: it begins not before the moment returned, statemachine.Never for none; 0
// if the error says nothing. At once is when this round began: now is reckoned, and may
// be ahead of Redis' clock.
func nextTry(err error, began, now statemachine.Time) statemachine.Time {
	after := func(d time.Duration) statemachine.Time {
		if d <= 0 {
			return began
		}
		return now.Add(min(timing.FromStd(d), farAway)) // d may be longer than the time can be counted
	}
	if back, ok := errors.AsType[*handBackError](err); ok {
		return after(back.after)
	}
	if left, ok := errors.AsType[*leftError](err); ok {
		return left.after
	}
	if _, permanent := errors.AsType[*permanentError](err); permanent {
		return statemachine.Never
	}
	if later, ok := errors.AsType[*retryError](err); ok {
		return after(later.after)
	}
	return 0
}
