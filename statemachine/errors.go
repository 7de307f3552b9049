package statemachine

import (
	"errors"
	"fmt"
)

// Errors of this package, to be matched with errors.Is.
var (
	// ErrNotDue means the table knows the event in this state, but none of its
	// conditions holds now; ask again later.
	ErrNotDue = errors.New("not due")
	// ErrStale means a worker spoke for a round it no longer holds. Nothing
	// changed and nothing will; the worker drops the round.
	ErrStale = errors.New("stale claim: the round is no longer held by this worker")
	// ErrConflict means the task has changed since the decision was made.
	// Nothing changed; read the task again and decide anew.
	ErrConflict = errors.New("the task has changed since the decision was made")
	// ErrStopAsked means a worker wanted the task opened again and did not know
	// that a stop was asked for. Nothing changed and the round is still its own:
	// it notes [Task.StopAsked] and decides anew.
	ErrStopAsked = errors.New("a stop was asked for: the task is not opened again")
)

// TransitionError says that the table has no row for an event: in this state,
// by this actor, it is never allowed.
type TransitionError struct {
	ID    int64
	From  State
	Event Event
	Actor Actor
}

// Error implements error.
func (e *TransitionError) Error() string {
	return fmt.Sprintf("task %d is %s: a %s cannot %s it", e.ID, e.From, e.Actor, e.Event)
}

// FieldError says that a field of a task does not hold what it must.
type FieldError struct {
	// Field is the name of the Redis hash field.
	Field string
	// Value is what was found there.
	Value string
	// Want says what belongs there.
	Want string
}

// Error implements error.
func (e *FieldError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%q is not %s", e.Value, e.Want)
	}
	return fmt.Sprintf("field %s: %q is not %s", e.Field, e.Value, e.Want)
}
