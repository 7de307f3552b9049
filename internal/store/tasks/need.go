package tasks

import (
	"errors"
	"fmt"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// CheckNeeds returns a *statemachine.FieldError for what a task at a place of its request cannot need.
func CheckNeeds(d *task.Definition, place int, planned bool) error {
	switch {
	case !planned && len(d.Needs) == 0:
		return nil
	case !planned:
		return &statemachine.FieldError{Field: "needs", Value: d.Needs[0].Text(), Want: "nothing, because the task belongs to no plan"}
	}
	if held := d.Text("hold"); held != "" {
		return &statemachine.FieldError{Field: "hold", Value: held, Want: "empty in a plan; hold the plan"}
	}
	return task.CheckNeeds(d.Needs, place)
}

// NeedError says why a task cannot need another one.
type NeedError struct {
	// Index is the place in the request of the task that needs it, ID what it needs.
	Index int
	ID    int64
	// Reason is one of the texts below.
	Reason string
}

// Why a task cannot be needed, or retried in a plan.
const (
	NeedMissing = "missing"
	NeedPurged  = "purged"
	NeedForeign = "foreign"
	NeedCut     = "cut"
	NeedBusy    = "busy"
	NeedAlive   = "alive"
)

// Error implements error.
func (e *NeedError) Error() string {
	switch e.Reason {
	case NeedForeign:
		return fmt.Sprintf("task %d belongs to another plan, or to none: a task needs tasks of its own plan only", e.ID)
	case NeedCut:
		return fmt.Sprintf("the output of task %d was cut at output_limit, so it is not a result: "+
			"raise the limit, or write result= to $TDF_CONTROL", e.ID)
	case NeedPurged:
		return fmt.Sprintf("%v, and its result with it: what needs it cannot be opened any more; submit the plan anew",
			&PurgedError{ID: e.ID})
	case NeedAlive:
		return fmt.Sprintf("task %d has not ended, so it cannot be repeated: wait for it, or cancel it first", e.ID)
	case NeedBusy:
		return fmt.Sprintf("those that need task %d are still being told of its end: try again", e.ID)
	default:
		return fmt.Sprintf("there is no task %d to be needed", e.ID)
	}
}

// PlanStateError says in which state a plan is that does not allow something. It matches [task.ErrPlanState].
type PlanStateError struct {
	ID    task.PlanID
	State task.PlanState
}

// Error implements error.
func (e *PlanStateError) Error() string {
	return fmt.Sprintf("plan %d is %s: %v", e.ID, e.State, task.ErrPlanState)
}

// Is reports whether target is ErrPlanState.
func (e *PlanStateError) Is(target error) bool { return target == task.ErrPlanState }

// refused reads what is wrong with the plan of a request.
func (req *OpenRequest) refused(r conn.Reply) error {
	switch r.Text(1) {
	case "none":
		return fmt.Errorf("plan %d: %w", req.Plan, task.ErrNoPlan)
	case "refuses":
		return &PlanStateError{ID: req.Plan, State: task.PlanState(r.Text(2))}
	case "grown":
		return fmt.Errorf("plan %d: %w", req.Plan, conn.ErrGrown)
	}
	return &NeedError{Index: int(r.Number(2)) - 1, ID: r.Number(3), Reason: r.Text(1)}
}

// IsBusy reports whether an error says that the dependants of a task are still being told of its end.
func IsBusy(err error) bool {
	need, ok := errors.AsType[*NeedError](err)
	return ok && need.Reason == NeedBusy
}
