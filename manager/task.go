package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// read is a task as the store has read it whole.
func read(t *tasks.TaskHeader) *task.Task {
	found := task.Decode(t.ID, t.Fields)
	found.State, found.Outcome, found.Err = t.State, t.Outcome, t.Err
	return found
}

// The hash fields that link tasks.
const (
	retryOfField     = "retry_of"
	retriedByField   = "retried_by"
	replayOfField    = "replay_of"
	replayRoundField = "replay_round"
)

// The hash fields of a task in a plan.
const (
	planField     = "plan"
	stepField     = "step"
	needsField    = "needs"
	waitsField    = "waits"
	doomedByField = "doomed_by"
	skippedField  = "skipped"
)

// NewestTask is the id of the task that was opened last; 0 if none was.
func (m *Manager) NewestTask(ctx context.Context) (int64, error) { return m.store.NewestID(ctx) }

// Task returns a task with all its rounds. The error matches [task.ErrNoTask] if there
// is none with that id, and also [task.ErrPurged] if there was one that has left Redis.
// A damaged task is no error here: it has its Err set.
func (m *Manager) Task(ctx context.Context, id int64) (*task.Task, error) {
	t, err := m.store.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	return read(t), nil
}

// Tasks reads tasks with all their rounds, in the order of the ids; nil for
// those that are not there. Outputs can be large: ask for a few at a time.
func (m *Manager) Tasks(ctx context.Context, ids []int64) ([]*task.Task, error) {
	found, err := m.store.TasksByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	tasks := make([]*task.Task, len(found))
	for i, t := range found {
		if t != nil {
			tasks[i] = read(t)
		}
	}
	return tasks, nil
}

// Files writes to w what a round has returned, packed: [fetch.UnpackFiles] reads it. The error matches [task.ErrNoBlob]
// if Redis keeps it no longer ([server] file_retention), or keeps something else in its place.
//
// [fetch.UnpackFiles]: https://pkg.go.dev/github.com/tdf-go/tdf/fetch#UnpackFiles
func (m *Manager) Files(ctx context.Context, f task.Files, w io.Writer) error {
	return verified(f.SHA256, w, func(w io.Writer) error { return m.store.Files(ctx, f.SHA256, w) })
}

// Counts are numbers of tasks by state.
type Counts map[statemachine.State]int64

// Count returns the number of tasks in each state, at one moment.
func (m *Manager) Count(ctx context.Context) (Counts, error) {
	c, err := m.store.Count(ctx)
	return Counts(c), err
}

// Total is the number of tasks.
func (c Counts) Total() int64 { return c.sum(func(statemachine.State) bool { return true }) }

// Left is the number of tasks that have not ended: work still to be done.
func (c Counts) Left() int64 {
	return c.sum(func(s statemachine.State) bool { return !s.Terminal() })
}

// Unarchived is the number of tasks that no manager has dealt with yet, those
// that have not ended included: what a Stop handler usually waits to be zero.
func (c Counts) Unarchived() int64 {
	return c.sum(func(s statemachine.State) bool { return s != statemachine.Archived })
}

func (c Counts) sum(count func(statemachine.State) bool) int64 {
	var n int64
	for state, k := range c {
		if count(state) {
			n += k
		}
	}
	return n
}

// absent is the error about a task that was not found.
func (m *Manager) absent(ctx context.Context, id int64) error {
	if _, err := m.store.Task(ctx, id); err != nil {
		return err
	}
	return fmt.Errorf("task %d: %w", id, task.ErrNoTask)
}

// SetMeta sets attributes of tasks in any state, by their names; an empty text removes one, and others stay as they are. A
// program that runs has them in its next round, a retry from its start on. See [Manager.Cancel] for the answer; a task that would have too
// many attributes is refused with a [*statemachine.FieldError].
func (m *Manager) SetMeta(ctx context.Context, ids []int64, meta map[string]string, o ChangeOptions) ([]Change, error) {
	o, err := m.complete(o)
	if err == nil {
		err = task.CheckMeta(meta)
	}
	if err == nil && len(meta) == 0 {
		err = fieldError("meta", "", "at least one attribute to set")
	}
	if err != nil {
		return nil, err
	}
	what := "attributes " + strings.Join(slices.Sorted(maps.Keys(meta)), ", ")
	return m.set(ctx, ids, "attr", what, o, func(part []int64, note tasks.Note) ([]statemachine.State, []tasks.Outcome, error) {
		return m.store.SetMeta(ctx, part, tasks.MetaChange{Set: meta, Note: note})
	})
}

// SetParams gives tasks that wait, open or blocked, other parameters (see [task.Spec]); none of them for nil. A retry and a
// replay have those of the task. See [Manager.Cancel] for the answer: one that does not wait is refused with [task.ErrBegun].
func (m *Manager) SetParams(ctx context.Context, ids []int64, params json.RawMessage, o ChangeOptions) ([]Change, error) {
	o, err := m.complete(o)
	if err != nil {
		return nil, err
	}
	text, err := task.Parse("params", string(params))
	if err != nil {
		return nil, err
	}
	return m.set(ctx, ids, "params", "params", o, func(part []int64, note tasks.Note) ([]statemachine.State, []tasks.Outcome, error) {
		return m.store.SetParams(ctx, part, text, note)
	})
}

// set changes fields of tasks, page by page, and notes in their logs what was set.
func (m *Manager) set(
	ctx context.Context, ids []int64, verb, what string, o ChangeOptions,
	change func(part []int64, note tasks.Note) ([]statemachine.State, []tasks.Outcome, error),
) (done []Change, err error) {
	note := tasks.Note{Writer: m.name, Text: what + " set by " + o.By, DryRun: o.DryRun}
	if o.Reason != "" {
		note.Text += ": " + o.Reason
	}
	for part := range slices.Chunk(ids, changeRead) {
		var states []statemachine.State
		outcomes, err := retryUntilAvailable(ctx, m, func() (outcomes []tasks.Outcome, err error) {
			states, outcomes, err = change(part, note)
			return outcomes, err
		})
		if err != nil {
			return done, earlier(fmt.Errorf("set %s: %w", what, err), m.note(ctx, o, verb, nil, changedIDs(done)))
		}
		for i, o := range outcomes {
			c := Change{ID: part[i], Before: states[i], After: states[i], Err: o.Err}
			if states[i] == statemachine.None {
				c.Err = m.absent(ctx, c.ID)
			}
			done = append(done, c)
		}
	}
	return done, m.note(ctx, o, verb, nil, changedIDs(done))
}

// number reads what another client may have written; 0 if that is no number.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
