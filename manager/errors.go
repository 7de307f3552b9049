package manager

import (
	"errors"
	"fmt"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
)

// Errors about managers, to be matched with errors.Is. Those about tasks and all else are
// in package task.
var (
	// ErrManagerAlive means that a standby manager (see [Options]) met a project's own
	// manager, which waits for the outcomes.
	ErrManagerAlive = conn.ErrManagerAlive
	// ErrHandlingLost is the cause, see context.Cause, with which the context of a
	// handler ends where another manager may be given its task.
	ErrHandlingLost = conn.ErrHandlingLost
	// ErrNoHandler means that [Handlers] have neither a handler of an outcome nor Unhandled.
	ErrNoHandler = errors.New("no handler is set: set one, or set Unhandled to manager.Archive")
	// ErrRunning means that Run of this Manager is under way already.
	ErrRunning = errors.New("this manager runs already")
)

// PlanStateError says in which state a plan is. It matches [task.ErrPlanState].
type PlanStateError = tasks.PlanStateError

// NeedError says why a task cannot need another one: it is not there, is of another
// plan, or its result was cut.
type NeedError = tasks.NeedError

// SpecError says which task of a submission cannot be opened, and why.
type SpecError struct {
	// Index counts the tasks of the submission from 0.
	Index int
	// Err is usually a *statemachine.FieldError.
	Err error
}

// Error implements error; it counts from 1, as people do.
func (e *SpecError) Error() string {
	return fmt.Sprintf("task %d of the submission: %v", e.Index+1, e.Err)
}

// Unwrap returns Err.
func (e *SpecError) Unwrap() error { return e.Err }

// SubmissionError says how far [Manager.SubmitAll] came.
type SubmissionError struct {
	// Opened is the number of tasks opened before the error.
	Opened int
	// RequestKey repeats the submission: given again, with the same tasks, by
	// [WithRequestKey], those opened already are not opened twice.
	RequestKey string
	// Err is the cause.
	Err error
}

// Error implements error.
func (e *SubmissionError) Error() string {
	return fmt.Sprintf("%d tasks were opened before this (request key %s): %v", e.Opened, e.RequestKey, e.Err)
}

// Unwrap returns Err.
func (e *SubmissionError) Unwrap() error { return e.Err }
