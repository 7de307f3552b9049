package fn

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of this package, to be matched with errors.Is.
var (
	// ErrValue means that a value is not what a function takes or a caller wants. It
	// comes as a *[ValueError].
	ErrValue = errors.New("the value does not fit")
	// ErrNoJob means that a context is not that of a function which runs in a plan.
	ErrNoJob = errors.New("this context is not that of a function in a plan: pass on the one that the function got")
)

// permanentCode is the exit code of rounds that are not to be tried again: EX_DATAERR
// of sysexits.h. The calls of this package have it in their fatal_exit_codes.
const permanentCode = 65

// permanentError is an error that another try does not mend.
type permanentError struct{ err error }

// Error is that of the cause.
func (e *permanentError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *permanentError) Unwrap() error { return e.err }

// ExitCode is that of the round; see worker.Handler.
func (e *permanentError) ExitCode() int { return permanentCode }

// Permanent marks an error that another try would not mend: a function that returns
// it, wrapped or not, is not run again. Its round has the exit code 65, EX_DATAERR of
// sysexits.h, after which calls are never tried again. Of nil it is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// ValueError says which value is not what a function takes or a caller wants. It
// matches [ErrValue]; returned by a function, it is permanent.
type ValueError struct {
	// Function is the name of the function, empty for a value that Get asked for.
	Function string
	// Argument is which of its arguments it is, from 1; 0 for its result.
	Argument int
	// Task is whose result it is; 0 for a known value, or that of the function itself.
	Task int64
	// Err says what is wrong with it.
	Err error
}

// Error names function, argument and task.
func (e *ValueError) Error() string {
	var of []string
	if e.Function != "" {
		of = append(of, "function "+e.Function)
	}
	switch {
	case e.Argument > 0:
		of = append(of, fmt.Sprintf("argument %d", e.Argument))
	case e.Function != "":
		of = append(of, "its result")
	}
	switch {
	case e.Task > 0:
		of = append(of, fmt.Sprintf("the result of task %d", e.Task))
	case e.Function == "":
		of = append(of, "the result")
	}
	return strings.Join(of, ", ") + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *ValueError) Unwrap() error { return e.Err }

// Is reports whether target is ErrValue.
func (e *ValueError) Is(target error) bool { return target == ErrValue }

// ExitCode is that of the round; see [Permanent].
func (e *ValueError) ExitCode() int { return permanentCode }
