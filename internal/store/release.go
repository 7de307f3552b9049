package store

import (
	"context"
	"fmt"
	"strconv"

	"github.com/tdf-go/tdf/statemachine"
)

// Drain is something that servers have to do for plans: tell the dependants of a task, move tasks of a plan, or open steps
// of one (see package growth).
type Drain struct {
	// Task, Plan or Growth, of a plan, is the id; the others are 0.
	Task, Plan, Growth int64
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
		case name[0] == 'g':
			drains = append(drains, Drain{Growth: id})
		}
	}
	return drains, nil
}

// MaxReleases is the most tasks one call of [Store.Release] takes.
const MaxReleases = 100

// Release tells at most so many tasks that need one of those that have ended how it ended, and returns of how many of the
// ids, from the first on, all have been told. Each is told once of each end, whoever calls and however often.
func (s *Store) Release(ctx context.Context, page int, ids ...int64) (done int, err error) {
	if len(ids) > MaxReleases || page < 1 {
		return 0, fmt.Errorf("release: %d tasks in pages of %d: want at most %d, in pages of at least 1", len(ids), page, MaxReleases)
	}
	k := s.keys
	keys, args := []string{k.meta()}, append([]any{page}, k.planning()...)
	for _, id := range ids {
		keys, args = append(keys, k.task(id), k.dependants(id), k.stuck(id)), append(args, id)
	}
	v, err := s.run(ctx, "release", keys, args...)
	if err != nil {
		return 0, err
	}
	n, _ := v.(int64)
	return int(n), nil
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
		tasks[i] = Freed{Seen: clockOf(r, 2).seen(decodeSeen(t.number(0), t[3:])), DoomedBy: t.number(1), Skipped: t.text(2) == "1"}
	}
	return tasks, r.time(0), nil
}
