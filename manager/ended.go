package manager

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Ended gives each of the tasks with all its rounds, once, as it ends: first those that
// have ended already, archived or not. It archives nothing, and stops after the last one.
// A damaged task has its Err set; so has one that left Redis before it could be read,
// to an error that matches [task.ErrNoTask].
//
// An error comes without a task and stops it: [task.ErrNoTask] for an id that was never
// opened, [task.ErrGone] if the namespace is flushed meanwhile or Redis loses a task, or the
// one of ctx. While Redis is away it goes on waiting.
func (m *Manager) Ended(ctx context.Context, ids []int64) iter.Seq2[*task.Task, error] {
	return func(yield func(*task.Task, error) bool) {
		if len(ids) == 0 {
			return
		}
		e := &ending{m: m, open: map[int64]bool{}}
		err := e.begin(ctx, ids)
		if err == nil {
			err = e.all(ctx, func(t *task.Task) bool { return yield(t, nil) })
		}
		if err != nil {
			yield(nil, waitEnded(ctx, "wait", err))
		}
	}
}

// ending follows tasks to their ends. The stream of events tells which of them have ended. They are looked at one by one
// only where that may leave something out, or is the longer of the two.
type ending struct {
	m      *Manager
	births *tasks.Births
	open   map[int64]bool // not given yet
	done   []int64        // of those, the ones to read, which have ended
	after  int64          // the newest event that is known, 0 for none
	quiet  int            // how many looks found no event
}

// quietLooks is after how many looks without an event the tasks themselves are looked at: other clients write no events.
const quietLooks = 5

func (e *ending) begin(ctx context.Context, ids []int64) (err error) {
	if _, e.after, err = e.m.store.EventSpan(ctx); err != nil { // before the tasks: nothing is missed in between
		return err
	}
	if e.births, err = e.m.store.Births(ctx); err != nil {
		return err
	}
	for _, id := range ids {
		e.open[id] = true
	}
	return e.sweep(ctx, func(id int64) error { return e.m.absent(ctx, id) })
}

// all gives tasks until none is left, or nobody wants more.
func (e *ending) all(ctx context.Context, give func(*task.Task) bool) error {
	var ended []*task.Task
	return e.m.watch(ctx, func() (more bool, err error) {
		ended = nil
		if len(e.done) == 0 {
			err = e.find(ctx)
		}
		if err == nil {
			ended, err = e.read(ctx)
		}
		return len(e.done) > 0, err
	}, func() (over bool) {
		for _, t := range ended {
			if !give(t) {
				return true
			}
		}
		return len(e.open) == 0
	})
}

// find looks which tasks have ended.
func (e *ending) find(ctx context.Context) error {
	oldest, newest, err := e.m.store.EventSpan(ctx)
	if err != nil {
		return err
	}
	e.quiet++
	switch {
	case newest != 0 && newest == e.after && e.quiet < quietLooks:
		return nil
	case e.after == 0 || newest <= e.after || oldest > e.after || newest-e.after > int64(len(e.open)):
		e.quiet = 0
		if err := e.sweep(ctx, nil); err != nil {
			return err
		}
		e.after = newest
		return nil
	}
	e.quiet = 0
	return e.hear(ctx, newest)
}

// hear reads the events up to one of that number.
func (e *ending) hear(ctx context.Context, to int64) error {
	for e.after < to {
		events, err := e.m.store.Events(ctx, e.after+1, sweepSize)
		if err != nil || len(events) == 0 {
			return err
		}
		for i := range events {
			event := &events[i]
			if e.open[event.ID] && (event.To.Terminal() || event.To == statemachine.None) {
				e.done = append(e.done, event.ID)
			}
		}
		e.after = events[len(events)-1].Seq
	}
	slices.Sort(e.done) // one may have ended and been archived
	e.done = slices.Compact(e.done)
	return nil
}

// sweep looks at every task that was not given. absent, unless nil, is the error about one that is not there.
func (e *ending) sweep(ctx context.Context, absent func(int64) error) error {
	var done []int64
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(e.open)), sweepSize) {
		found, err := e.m.store.Fields(ctx, ids, tasks.BirthFields("outcome", "round")...)
		if err == nil {
			err = e.births.Check(ctx, ids, found)
		}
		if err != nil {
			return err
		}
		for i, id := range ids {
			if found[i] == nil && absent != nil {
				return absent(id)
			}
			if state := statemachine.State(found[i]["state"]); !state.Valid() || state.Terminal() {
				done = append(done, id)
			}
		}
	}
	e.done = done
	return nil
}

// read reads the next tasks that have ended, whole. One that has not, after Redis lost its end, is left for later.
func (e *ending) read(ctx context.Context) ([]*task.Task, error) {
	ids := e.done[:min(len(e.done), readAtOnce)]
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := e.m.Tasks(ctx, ids)
	if err != nil {
		return nil, err
	}
	records := make([]map[string]string, len(ids))
	for i, t := range found {
		if t != nil {
			records[i] = t.Fields
		} else {
			found[i] = &task.Task{ID: ids[i], Err: e.m.absent(ctx, ids[i])}
		}
	}
	if err := e.births.Check(ctx, ids, records); err != nil {
		return nil, err
	}
	e.done = e.done[len(ids):]
	found = slices.DeleteFunc(found, func(t *task.Task) bool { return t.Err == nil && !t.State.Terminal() })
	for _, t := range found {
		delete(e.open, t.ID)
		e.births.Forget(t.ID)
	}
	return found, nil
}
