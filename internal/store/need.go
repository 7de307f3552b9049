package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A script blocks Redis while it runs: the most tasks and needs that one call should add to a plan. More are not refused, as
// one task may need so many.
const (
	PlanTasks = 100
	PlanNeeds = 100
)

// needs adds the needs of a task to a call that opens it.
func (c *openCall) needs(d *task.Definition) error {
	place := c.count
	c.count++
	if err := CheckNeeds(d, place, c.plan > 0); err != nil {
		return err
	}
	c.tasks = append(c.tasks, 2*len(d.Needs))
	for _, n := range d.Needs {
		to := strconv.FormatInt(n.Task, 10)
		if n.Task == 0 {
			to = "@" + strconv.Itoa(n.Index+1)
		}
		c.tasks = append(c.tasks, to, string(cmp.Or(n.On, task.NeedsSuccess)))
	}
	return nil
}

// CheckNeeds returns a *statemachine.FieldError for what a task at a place of its request cannot need.
func CheckNeeds(d *task.Definition, place int, planned bool) error {
	switch held := d.Text("hold"); {
	case len(d.Needs) > 0 && !planned:
		return &statemachine.FieldError{Field: "needs", Value: d.Needs[0].Text(), Want: "nothing, because the task belongs to no plan"}
	case planned && held != "":
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
		return fmt.Sprintf("the output of task %d was cut at output_limit, so it is no result: "+
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

// PlanStateError says in which state a plan is that does not allow something. It matches [ErrPlanState].
type PlanStateError struct {
	ID    int64
	State task.PlanState
}

// Error implements error.
func (e *PlanStateError) Error() string {
	return fmt.Sprintf("plan %d is %s: %v", e.ID, e.State, ErrPlanState)
}

// Is reports whether target is ErrPlanState.
func (e *PlanStateError) Is(target error) bool { return target == ErrPlanState }

// refused reads what is wrong with the plan of a request.
func (req *OpenRequest) refused(r reply) error {
	switch r.text(1) {
	case "none":
		return fmt.Errorf("plan %d: %w", req.Plan, ErrNoPlan)
	case "refuses":
		return &PlanStateError{ID: req.Plan, State: task.PlanState(r.text(2))}
	case "grown":
		return fmt.Errorf("plan %d: %w", req.Plan, ErrGrown)
	}
	return &NeedError{Index: int(r.number(2)) - 1, ID: r.number(3), Reason: r.text(1)}
}

// planText is the id of a plan, empty for none.
func planText(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// IsBusy reports whether an error says that the dependants of a task are still being told of its end.
func IsBusy(err error) bool {
	need, ok := errors.AsType[*NeedError](err)
	return ok && need.Reason == NeedBusy
}

// Source is a task whose lines steps of a plan are for.
type Source struct {
	task.Result
	// Pending says that it is retried just now, Skipped that it did not have to succeed.
	Pending, Skipped bool
}

// Results reads the results of tasks, in the order of the ids.
func (s *Store) Results(ctx context.Context, ids []int64) ([]task.Result, error) {
	if results, all, err := s.plainResults(ctx, ids); all || err != nil {
		return results, err
	}
	sources, err := s.Sources(ctx, ids)
	if err != nil {
		return nil, err
	}
	results := make([]task.Result, len(ids))
	for i := range results {
		results[i] = sources[i].Result
	}
	return results, nil
}

// Sources reads the results of tasks and whether others are still to come, in the order of the ids.
func (s *Store) Sources(ctx context.Context, ids []int64) ([]Source, error) {
	args := make([]any, 0, len(ids))
	for _, id := range ids {
		args = append(args, id)
	}
	r, err := s.runList(ctx, "results", subject{}, args...)
	if err != nil {
		return nil, err
	}
	sources := make([]Source, len(ids))
	for i := range sources {
		t := r.list(i)
		sources[i] = Source{
			Result:  task.Result{Task: t.number(0), End: statemachine.State(t.text(1)), Cut: t.text(2) != "", Text: t.text(3)},
			Pending: t.text(4) != "", Skipped: t.text(5) != "",
		}
	}
	return sources, nil
}

// plainResults reads results as most tasks bring them, in their first round and without a retry, and reports whether all are
// so: to follow others takes a script, which costs Redis twice as much.
func (s *Store) plainResults(ctx context.Context, ids []int64) (results []task.Result, all bool, err error) {
	cmds := make([]*redis.SliceCmd, len(ids))
	err = s.pipelined(ctx, "results", func(p redis.Pipeliner) {
		for i, id := range ids {
			cmds[i] = p.HMGet(ctx, s.keys.task(id), "state", "outcome", "round", "retried_by", "0:result", "0:output", "0:output_bytes")
		}
	})
	if err != nil {
		return nil, false, err
	}
	results = make([]task.Result, len(ids))
	for i, id := range ids {
		t := asReply(cmds[i].Val()) // nothing if it is no task
		if !plain(t) {
			return nil, false, nil
		}
		text, said := t[4].(string)
		if !said {
			text = strings.TrimSuffix(t.text(5), "\n")
		}
		results[i] = task.Result{Task: id, End: statemachine.Succeeded, Text: text, Cut: !said && t[6] != nil}
	}
	return results, true, nil
}

// plain reports whether a task has succeeded in its first round, and was not retried.
func plain(t reply) bool {
	end := t.text(0)
	if end == string(statemachine.Archived) {
		end = t.text(1)
	}
	return end == string(statemachine.Succeeded) && t.text(2) == "0" && t.text(3) == ""
}
