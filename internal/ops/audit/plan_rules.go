package audit

import (
	"fmt"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// neighbours is a task of a plan with the tasks that it needs and all that repeat those, at one moment.
type neighbours struct {
	task  *store.Planned
	needs []store.Planned
	// direct are those of needs that have not been retried.
	direct map[int64]bool
	plan   *store.PlanSum
}

// free reports whether a task need not wait any longer, or never will run.
func free(t *store.Planned) bool {
	return t.State == statemachine.Blocked && (t.Waits <= 0 || t.DoomedBy > 0)
}

// moves are what of a task the servers must have on their lists, or must not: a repair can put that right.
func (n *neighbours) moves() (found []string) {
	t := n.task
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if free(t) && !t.Held && !t.Freed {
		say("it is blocked and waits for nothing, but is not among the tasks of plan %d to be moved: no server will", t.Plan)
	}
	if t.Freed && !free(t) {
		say("it is among the tasks of plan %d to be moved, but is %s and waits for %d", n.plan.ID, t.State, t.Waits)
	}
	if t.End != statemachine.None && t.Dependants > 0 && t.RetriedBy == 0 && !t.Draining && !n.mayKeep() {
		say("it has ended, and %d that need it are not to be told: they wait for ever", t.Dependants)
	}
	return found
}

// mayKeep reports whether those that need the task, which has ended, may be put aside until it is retried.
func (n *neighbours) mayKeep() bool {
	return store.NeedsSuccess.Verdict(n.task.End, n.task.Skipped, n.plan.OnFailure) == store.VerdictWait
}

// records are what the records of a task and of those that need it say, and cannot.
func (n *neighbours) records() (found []string) {
	t := n.task
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	switch {
	case t.Dependants+t.Stuck > 0 && t.RetriedBy != 0:
		say("task %d repeats it, but %d still wait for it", t.RetriedBy, t.Dependants+t.Stuck)
	case t.Dependants+t.Stuck > 0 && !t.Feeds:
		say("%d need it, but it does not say so: they will not be told of its end", t.Dependants+t.Stuck)
	case t.Stuck > 0 && !t.Draining:
		say("%d that need it were put aside in the middle of being told, and no server goes on with it", t.Stuck)
	}
	if t.Waits > 0 && t.DoomedBy == 0 && begun(t) {
		say("it is %s, but has not got the results of %d that it needs", t.State, t.Waits)
	}
	if t.State == statemachine.Blocked {
		found = append(found, n.waits()...)
	}
	return found
}

// begun reports whether a task has been open: it may be called off, or expire, while it waits for others.
func begun(t *store.Planned) bool {
	switch t.End {
	case statemachine.None:
		return t.State != statemachine.Blocked && t.State != ""
	case statemachine.Cancelled, statemachine.Expired:
		return false
	default:
		return true
	}
}

// waits: a task waits for as many as will tell it of their end.
func (n *neighbours) waits() (found []string) {
	t, names := n.task, int64(0)
	for i := range n.needs {
		need := &n.needs[i]
		names += need.Names
		if need.End == statemachine.None && need.Names == 0 && n.direct[need.ID] {
			found = append(found, fmt.Sprintf("it needs task %d, which has not ended and will not tell it", need.ID))
		}
	}
	if names != t.Waits && found == nil {
		found = append(found, fmt.Sprintf("it waits for %d, but %d will tell it of their end", t.Waits, names))
	}
	return found
}
