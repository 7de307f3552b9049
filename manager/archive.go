package manager

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// ArchiveDirs reads tasks that have left Redis, from directories: the archive_dir of servers.
type ArchiveDirs struct {
	Dirs      []string
	Namespace string
	// Damaged is told of what cannot be read; reading goes on.
	Damaged func(error)
}

// Reader reads the records of the archive.
func (a *ArchiveDirs) Reader() *archive.Reader {
	return &archive.Reader{Dirs: a.Dirs, Namespace: a.Namespace, Damaged: func(e *archive.DamageError) { a.Damaged(e) }}
}

// Find reads all tasks that had an id, the one opened last first: there are several where the namespace was flushed.
func (a *ArchiveDirs) Find(ctx context.Context, id int64) ([]*task.Task, error) {
	found, err := a.Reader().Find(ctx, id)
	tasks := make([]*task.Task, len(found))
	for i := range found {
		tasks[i] = ArchivedTask(id, found[i].Fields)
	}
	return tasks, err
}

// Select reads the tasks that are meant; see [Filter.Archived]. With Limit and Newest they are those that were archived last, that
// one first; else they come in the order of the archive, and none is held.
func (a *ArchiveDirs) Select(ctx context.Context, sel Selection) iter.Seq2[*task.Task, error] {
	return func(yield func(*task.Task, error) bool) {
		r := a.Reader()
		r.Wants = sel.wants
		if sel.Newest && sel.Limit > 0 {
			records, err := r.Newest(ctx, sel.Limit, sel.meansEntry)
			for i := range records {
				if !yield(ArchivedTask(records[i].ID, records[i].Fields), nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
			}
			return
		}
		err := r.Latest(ctx, func(e *archive.Entry) error {
			t, err := sel.archived(e)
			if t != nil && !yield(t, nil) {
				return errEnough
			}
			return err
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(nil, err)
		}
	}
}

func (s *Selection) wants(first, last int64) bool {
	return s.IDs == nil || slices.ContainsFunc(s.IDs, func(r IDRange) bool { return r.First <= last && first <= r.Last })
}

// archived reads an entry, if it is meant.
func (s *Selection) archived(e *archive.Entry) (*task.Task, error) {
	if !s.meansHead(e) {
		return nil, nil //nolint:nilnil // not meant
	}
	record, err := e.Record()
	if err != nil {
		return nil, err
	}
	if t := ArchivedTask(e.ID, record.Fields); s.fits(t) {
		return t, nil
	}
	return nil, nil //nolint:nilnil // not meant
}

// meansHead judges an entry by its id and outcome.
func (s *Selection) meansHead(e *archive.Entry) bool {
	return s.wants(e.ID, e.ID) && (len(s.Outcomes) == 0 || slices.Contains(s.Outcomes, statemachine.State(e.Outcome)))
}

// meansEntry judges an entry by all conditions. It reads the whole record only if one of them needs that.
func (s *Selection) meansEntry(e *archive.Entry) (bool, error) {
	if !s.narrowSpec() && s.Match == nil {
		return s.meansHead(e), nil
	}
	t, err := s.archived(e)
	return t != nil, err
}

// fits judges a task by all conditions but its id and outcome.
func (s *Selection) fits(t *task.Task) bool {
	if !s.meansSpec(t) {
		return false
	}
	if s.Match == nil {
		return true
	}
	last := t.Last()
	return last != nil && s.Match.MatchString(last.Error)
}

// Archived is [Filter.Selection] of tasks of an archive. All of them are archived, so states say how they ended.
func (f *Filter) Archived(newest func() (int64, error)) (Selection, error) {
	sel, err := f.Selection(newest)
	if err != nil {
		return sel, err
	}
	for _, state := range sel.States {
		if state != statemachine.Archived && !state.IsOutcome() {
			return sel, &FilterError{"state", string(state) + ": an archive has tasks that have ended and were archived; " +
				"write archived for all of them, or how they ended, such as failed"}
		}
	}
	if !slices.Contains(sel.States, statemachine.Archived) {
		sel.Outcomes = sel.States
	}
	sel.States = nil
	return sel, nil
}
