package verbs

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/internal/ops/bulk"
	"github.com/tdf-go/tdf/internal/ops/cold"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// wholeTasks reads all tasks that words and flags mean, with their rounds: those in Redis in the order of their ids, those of an
// archive in its order. It holds the ids, and a page of tasks.
type wholeTasks struct {
	s      *session
	choice *choice
	sel    manager.Selection
	cold   *cold.Archive // nil for Redis
	// ids are those that find has found, sorted.
	ids []int64
	// missing are ids that were named, and are of no task.
	missing []int64
}

// anywhere makes a verb about whole tasks, in Redis or, if there are directories, in an archive.
func (a *app) anywhere(dirs *[]string, do func(ctx context.Context, s *session, a *cold.Archive) error) runFunc {
	live := a.withManager(func(ctx context.Context, s *session) error { return do(ctx, s, nil) })
	return liveOrCold(dirs, live, a.withArchive(dirs, do))
}

// whole finds the tasks that are meant, all of them if nothing is said. visit, unless it is nil, gets each as far as
// [manager.Manager.Select] reads it, with fields, in no order.
func (c *choice) whole(
	ctx context.Context, s *session, a *cold.Archive, visit func(*task.Task), fields ...string,
) (w *wholeTasks, err error) {
	w = &wholeTasks{s: s, choice: c, cold: a}
	if a != nil {
		w.sel, err = c.archived(s, noLast)
	} else {
		w.sel, err = c.selection(ctx, s)
		w.sel.All = w.sel.IDs == nil
		w.sel.Archived, w.sel.Fields = true, fields
	}
	w.sel.NotRetried = len(w.sel.States) > 0
	if err == nil && (a == nil || visit != nil) {
		err = w.find(ctx, visit)
	}
	return w, err
}

func (w *wholeTasks) find(ctx context.Context, visit func(*task.Task)) error {
	read := w.s.manager.Select
	if w.cold != nil {
		read = w.cold.Select
	}
	for t, err := range read(ctx, w.sel) {
		switch {
		case err != nil:
			return err
		case t.State == statemachine.None:
			w.missing = append(w.missing, t.ID)
		default:
			w.ids = append(w.ids, t.ID)
			if visit != nil {
				visit(t)
			}
		}
	}
	slices.Sort(w.ids)
	return nil
}

// all reads the tasks whole, those of Redis that find has found.
func (w *wholeTasks) all(ctx context.Context) iter.Seq2[*task.Task, error] {
	if w.cold != nil {
		return w.archived(ctx)
	}
	return func(yield func(*task.Task, error) bool) {
		for ids := range slices.Chunk(w.ids, exportPage) {
			tasks, err := w.s.manager.Tasks(ctx, ids)
			if err != nil {
				yield(nil, err)
				return
			}
			for i, t := range tasks {
				if t == nil { // it has left Redis meanwhile
					w.missing = append(w.missing, ids[i])
				} else if !yield(t, nil) {
					return
				}
			}
		}
	}
}

func (w *wholeTasks) archived(ctx context.Context) iter.Seq2[*task.Task, error] {
	return func(yield func(*task.Task, error) bool) {
		found := &archive.IDs{}
		for t, err := range w.cold.Select(ctx, w.sel) {
			if err == nil {
				found.Add(t.ID)
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
		w.missing = w.choice.missing(w.sel.IDs, found)
	}
}

// missing are the ids that were named, and are of no task that was found, unless there are other conditions.
func (c *choice) missing(named []manager.IDRange, found *archive.IDs) (ids []int64) {
	if c.Narrow() {
		return nil
	}
	for _, r := range named {
		for id := r.First; id <= r.Last; id++ {
			if !found.Has(id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// noteIDs prints how many tasks TEXT is about, and which, if there are any: 3 TEXT: 1,7-8.
func (s *session) noteIDs(ids []int64, text string) {
	if len(ids) > 0 {
		s.note("%d %s: %s", len(ids), text, someIDs(ids))
	}
}

// tell reports the missing tasks, and where those that have left Redis may be. If n, the number of tasks found, is 0 and none
// is missing, it says that no task fits.
func (w *wholeTasks) tell(ctx context.Context, n int) error {
	if len(w.missing) == 0 {
		if n == 0 {
			return w.nothing(ctx)
		}
		return nil
	}
	slices.Sort(w.missing)
	w.s.note("%s: %s", map[bool]string{true: "no such task", false: "not in the archive"}[w.cold == nil], someIDs(w.missing))
	if w.cold != nil {
		return nil
	}
	_, err := w.s.manager.Task(ctx, w.missing[0])
	switch {
	case errors.Is(err, task.ErrPurged):
		w.s.note("task %d has left Redis; %s", w.missing[0], purgedRemedy)
		return nil
	case errors.Is(err, task.ErrNoTask):
		return nil
	}
	return err
}

// nothing is what to say where no task fits.
func (w *wholeTasks) nothing(ctx context.Context) error {
	if w.cold == nil {
		if err := w.choice.nothing(ctx, w.s); err != nil {
			return err
		}
	}
	w.s.note("no task fits")
	return nil
}

// whichTasks is the error of a verb that needs tasks and was given none.
const whichTasks = "which tasks? Name them as 7, 3-9, " + bulk.LastTask + " or all, or narrow them by --state, --queue, --program, --match"
