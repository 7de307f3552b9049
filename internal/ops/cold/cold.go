// Package cold reads tasks that have left Redis, as package manager reads those that have not.
package cold

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/tdf-go/tdf/internal/ops/archive"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Archive reads such tasks from directories: the archive_dir of servers.
type Archive struct {
	Dirs      []string
	Namespace string
	// Damaged is told of what cannot be read; reading goes on.
	Damaged func(error)
}

// Reader reads the records of the archive.
func (a *Archive) Reader() *archive.Reader {
	return &archive.Reader{Dirs: a.Dirs, Namespace: a.Namespace, Damaged: func(e *archive.DamageError) { a.Damaged(e) }}
}

// Find reads all tasks that had an id, the one opened last first: there are several where the namespace was flushed.
func (a *Archive) Find(ctx context.Context, id int64) ([]*task.Task, error) {
	found, err := a.Reader().Find(ctx, id)
	all := make([]*task.Task, len(found))
	for i := range found {
		all[i] = read(id, found[i].Fields)
	}
	return all, err
}

// Select reads the tasks that are meant; see [bulk.Filter.Archived]. With Limit and Newest they are those that were archived last, that
// one first; else they come in the order of the archive, and none is held.
func (a *Archive) Select(ctx context.Context, sel manager.Selection) iter.Seq2[*task.Task, error] {
	return func(yield func(*task.Task, error) bool) {
		r := a.Reader()
		c := choice{&sel}
		r.Wants = c.wants
		if sel.Newest && sel.Limit > 0 {
			records, err := r.Newest(ctx, sel.Limit, c.meansEntry)
			for i := range records {
				if !yield(read(records[i].ID, records[i].Fields), nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
			}
			return
		}
		err := r.Latest(ctx, func(e *archive.Entry) error {
			t, err := c.task(e)
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

// errEnough ends a reading whose reader wants no more.
var errEnough = errors.New("enough was read")

// choice is the selection that is read.
type choice struct{ *manager.Selection }

func (c choice) wants(first, last int64) bool {
	return c.IDs == nil || slices.ContainsFunc(c.IDs, manager.IDRange{First: first, Last: last}.Meets)
}

// task reads an entry, if it is meant.
func (c choice) task(e *archive.Entry) (*task.Task, error) {
	if !c.meansHead(e) {
		return nil, nil //nolint:nilnil // not meant
	}
	record, err := e.Record()
	if err != nil {
		return nil, err
	}
	if t := read(e.ID, record.Fields); c.fits(t) {
		return t, nil
	}
	return nil, nil //nolint:nilnil // not meant
}

// meansHead judges an entry by its id and outcome.
func (c choice) meansHead(e *archive.Entry) bool {
	return c.wants(e.ID, e.ID) && c.FitsArchived(statemachine.State(e.Outcome))
}

// meansEntry judges an entry by all conditions. It reads the whole record only if one of them needs that.
func (c choice) meansEntry(e *archive.Entry) (bool, error) {
	if c.Queue == "" && c.Program == "" && c.Plan == 0 && len(c.Labels) == 0 && len(c.Meta) == 0 && c.Match == nil && !c.NotRetried {
		return c.meansHead(e), nil
	}
	t, err := c.task(e)
	return t != nil, err
}

// fits judges a task by all conditions but its id and outcome.
func (c choice) fits(t *task.Task) bool {
	if !c.Fits(t) {
		return false
	}
	if c.Match == nil {
		return true
	}
	last := t.Last()
	return last != nil && c.Match.MatchString(last.Error)
}

// read makes a task of the fields of its record. A spoilt one has its Err set.
func read(id int64, fields map[string]string) *task.Task {
	header := tasks.ArchivedTask(id, fields)
	t := task.Decode(id, fields)
	t.State, t.Outcome, t.Err = header.State, header.Outcome, header.Err
	return t
}
