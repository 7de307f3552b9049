package manager

import (
	"errors"
	"fmt"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
)

// Errors of this package, to be matched with errors.Is. Values of a [Spec] that
// cannot be are a *statemachine.FieldError, to be found with errors.As.
var (
	// ErrUnreachable means Redis could not be talked to.
	ErrUnreachable = conn.ErrUnreachable
	// ErrNotFound means there is no task with that id.
	ErrNotFound = conn.ErrNotFound
	// ErrPurged means the task was archived and has left Redis, as the servers' archive_retention says; it comes with ErrNotFound.
	ErrPurged = conn.ErrPurged
	// ErrGone means that a task or plan that was being watched is not there any more,
	// and perhaps another one under its id: the namespace was flushed, or Redis has
	// lost changes.
	ErrGone = conn.ErrGone
	// ErrNoWorker means that no worker has ever had that name.
	ErrNoWorker = conn.ErrNoWorker
	// ErrDamaged means that a task's record in Redis is missing or spoilt.
	ErrDamaged = conn.ErrDamaged
	// ErrManagerAlive means that a standby manager (see [Options]) met a project's own
	// manager, which waits for the outcomes.
	ErrManagerAlive = conn.ErrManagerAlive
	// ErrNoQueue means that there is no queue of that name.
	ErrNoQueue = conn.ErrNoQueue
	// ErrQueueExists means that there is a queue of that name already.
	ErrQueueExists = conn.ErrQueueExists
	// ErrQueueInUse means that a queue has tasks that have not ended.
	ErrQueueInUse = conn.ErrQueueInUse
	// ErrNodeInUse means that a worker is registered from a node, or a task runs there.
	ErrNodeInUse = conn.ErrNodeInUse
	// ErrNoPlan means that there is no plan with that id.
	ErrNoPlan = conn.ErrNoPlan
	// ErrPlanState means that a plan is in a state that does not allow something. It
	// comes as a *[PlanStateError].
	ErrPlanState = conn.ErrPlanState
	// ErrWaits means that a task of a plan waits for others, and cannot be released
	// by hand.
	ErrWaits = errors.New("the task waits for others of its plan")
	// ErrNotEnded means that a task has not ended, so that it cannot be repeated.
	ErrNotEnded = errors.New("the task has not ended")
	// ErrNeedsResults means that a task cannot be repeated by itself, because it had the
	// results of other tasks as its arguments.
	ErrNeedsResults = errors.New("it had the results of other tasks as arguments: retry it, which gives it those again")
	// ErrNoRound means that a task has no such round, or that no worker has begun it.
	ErrNoRound = errors.New("no such round")
	// ErrNoReplay means that a task is not the replay of another.
	ErrNoReplay = errors.New("the task is not a replay")
	// ErrHandlingLost is the cause, see context.Cause, with which the context of a
	// handler ends where another manager may be given its task.
	ErrHandlingLost = conn.ErrHandlingLost
	// ErrNoHandler means that [Handlers] have neither a handler of an outcome nor Unhandled.
	ErrNoHandler = errors.New("no handler is set: set one, or set Unhandled to manager.Archive")
	// ErrRunning means that Run of this Manager is under way already.
	ErrRunning = errors.New("this manager runs already")
	// ErrRequestKey means that a request key was used before, for other tasks.
	ErrRequestKey = conn.ErrRequestKey
)

// PlanStateError says in which state a plan is. It matches [ErrPlanState].
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
