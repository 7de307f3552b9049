package fn

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tdf-go/tdf/worker"
)

// Errors of this package, to be matched with errors.Is.
var (
	// ErrValue means that a value is not what a function takes or a caller wants. It
	// comes as a *[ValueError].
	ErrValue = errors.New("the value does not fit")
	// ErrNoJob means that a context is not that of a function in a plan.
	ErrNoJob = errors.New("this context is not that of a function in a plan: pass on the one that the function got")
)

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

// Unwrap returns Err, marked as worker.Permanent.
func (e *ValueError) Unwrap() error { return worker.Permanent(e.Err) }

// Is reports whether target is ErrValue.
func (e *ValueError) Is(target error) bool { return target == ErrValue }
