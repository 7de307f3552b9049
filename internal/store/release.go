package store

import (
	"context"
	"strconv"

	"github.com/tdf-go/tdf/statemachine"
)

// Drain is something that servers have to do for plans: tell the dependants of a task, or move tasks of a plan.
type Drain struct {
	// Task or Plan is the id; the other one is 0.
	Task, Plan int64
}

// Draining returns what servers have to do for plans, the oldest first, from a rank on, at most so much.
func (s *Store) Draining(ctx context.Context, offset, limit int) ([]Drain, error) {
	names, err := s.rdb.ZRange(ctx, s.keys.draining(), int64(offset), int64(offset+limit-1)).Result()
	if err != nil {
		return nil, s.failed("draining", err)
	}
	drains := make([]Drain, 0, len(names))
	for _, name := range names {
		id, err := strconv.ParseInt(name[min(1, len(name)):], 10, 64)
		switch {
		case err != nil:
		case name[0] == 't':
			drains = append(drains, Drain{Task: id})
		case name[0] == 'p':
			drains = append(drains, Drain{Plan: id})
		}
	}
	return drains, nil
}

// Release tells at most so many tasks that need an ended one how it ended, and reports whether there are more. Each of
// them is told once, whoever calls and however often.
func (s *Store) Release(ctx context.Context, id int64, page int) (more bool, err error) {
	k := s.keys
	r, err := s.runList(ctx, "release", []string{k.meta(), k.task(id), k.dependants(id), k.stuck(id)},
		append([]any{id, page}, k.planning()...)...)
	if err != nil {
		return false, err
	}
	return r.number(0) == 1, nil
}

// Freed is a blocked task of a plan that is to be moved.
type Freed struct {
	Seen
	// DoomedBy is the task because of which it can never run, 0 if it may run now. Skipped says that this is no
	// failure: it was to run only if that one failed.
	DoomedBy int64
	Skipped  bool
}

// Event is what is to happen to the task.
func (f *Freed) Event() statemachine.Event {
	if f.DoomedBy > 0 {
		return statemachine.Cancel
	}
	return statemachine.Unblock
}

// FreedTasks reads tasks of a plan that are to be moved, from a rank on, at most so many: none if it is not ready.
func (s *Store) FreedTasks(ctx context.Context, plan int64, offset, limit int) ([]Freed, statemachine.Time, error) {
	k := s.keys
	r, err := s.runList(ctx, "freed", []string{k.meta(), k.plan(plan), k.freed(plan), k.draining()}, plan, offset, limit, k.taskPrefix())
	if err != nil {
		return nil, 0, err
	}
	tasks := make([]Freed, len(r.list(1)))
	for i := range tasks {
		t := r.list(1).list(i)
		tasks[i] = Freed{Seen: decodeSeen(t.number(0), t[3:]), DoomedBy: t.number(1), Skipped: t.text(2) == "1"}
	}
	return tasks, r.time(0), nil
}

// Result is what a task has brought.
type Result struct {
	// Task is its id: that of the last retry that has ended, or succeeded if one has.
	Task int64
	// End is how it ended; empty if it has not.
	End statemachine.State
	// Text is its result: what the program wrote as result= to $TDF_CONTROL, or its output without the newline at the end.
	Text string
	// Cut says that the output was cut, so that Text is not all of it.
	Cut bool
}

// Results reads the results of tasks, in the order of the ids.
func (s *Store) Results(ctx context.Context, ids []int64) ([]Result, error) {
	args := make([]any, 0, 1+len(ids))
	args = append(args, s.keys.taskPrefix())
	for _, id := range ids {
		args = append(args, id)
	}
	r, err := s.runList(ctx, "results", []string{s.keys.meta()}, args...)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(ids))
	for i := range results {
		t := r.list(i)
		results[i] = Result{Task: t.number(0), End: statemachine.State(t.text(1)), Cut: t.text(2) != "", Text: t.text(3)}
	}
	return results, nil
}
