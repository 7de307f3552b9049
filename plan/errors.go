package plan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// Errors of this package, to be matched with errors.Is.
var (
	// ErrForeign means that a task needs one that is nil or of another plan.
	ErrForeign = errors.New("a task needs tasks of its own plan only")
	// ErrNotSent means that a task has no id yet: see [Plan.Send].
	ErrNotSent = errors.New("the task was not sent yet")
	// ErrNotOver means that Wait ended although the plan is not over.
	ErrNotOver = errors.New("the plan is not over")
	// ErrNoResult means that a task has no result that can be used. It comes as a
	// *[ResultError].
	ErrNoResult = errors.New("the task has no result")
)

// TaskError says which task of a plan cannot be sent.
type TaskError struct {
	// Index counts the tasks that were added, from 0; Program is that of the task.
	Index   int
	Program string
	// Place says which of its needs is wrong, from 1; 0 for none.
	Place int
	// Err says why: usually a *statemachine.FieldError or a *manager.NeedError. It matches
	// [ErrForeign] if a need is not of this plan.
	Err error
}

// Error implements error; it counts from 1, as people do.
func (e *TaskError) Error() string {
	place := ""
	if e.Place > 0 {
		place = fmt.Sprintf(", dependency %d", e.Place)
	}
	return fmt.Sprintf("task %d of the plan (%s)%s: %v", e.Index+1, e.Program, place, e.Err)
}

// Unwrap returns Err.
func (e *TaskError) Unwrap() error { return e.Err }

// ResultError says why there is no result. It matches [ErrNoResult].
type ResultError struct {
	// Task is the task, or the last one that it was retried by.
	Task int64
	// End is how it ended, empty if it has not; Cut says that its output was cut.
	End statemachine.State
	Cut bool
	// Message is the error of its last round, empty if there is none.
	Message string
	// Reasons say by which rule it ended, and how its last round did, as
	// [manager.Manager.Why] does.
	Reasons manager.Explanation
}

// Error says how the task ended and why: the rule, its last round, and the beginning and the end of that one's error.
func (e *ResultError) Error() string {
	var why []string
	for _, r := range e.Reasons {
		if r.Kind != "archived" && r.Kind != "retried" && r.Kind != "clock" { // the cause, not what happened afterwards
			why = append(why, r.Text)
		}
	}
	switch {
	case e.Cut:
		return fmt.Sprintf("task %d: its output was cut at output_limit: %v; raise the limit, or write result= to $TDF_CONTROL",
			e.Task, ErrNoResult)
	case e.End == statemachine.None:
		return fmt.Sprintf("task %d has not ended: %v", e.Task, ErrNoResult)
	case len(why) > 0:
		return fmt.Sprintf("task %d has ended %s", e.Task, strings.Join(why, "; "))
	}
	return fmt.Sprintf("task %d has ended %s: %v", e.Task, e.End, ErrNoResult)
}

// Is reports whether target is ErrNoResult.
func (e *ResultError) Is(target error) bool { return target == ErrNoResult }
