package manager

import (
	"context"
	"fmt"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// LastRound is, for [Manager.Replay], the last round that a worker has begun.
const LastRound = -1

// Replay opens a task that does once more what an ended one did in a round, with
// the very program of that round where its hash was recorded and the source can
// be pinned to it. The new task starts at once, is not opened again after a
// failure, and is linked by replay_of. The error matches [ErrNotFound],
// [ErrNotEnded], [ErrNoRound], [ErrNeedsResults] or [ErrDamaged]. In a dry run the id is 0.
func (m *Manager) Replay(ctx context.Context, id int64, round int, opts ...ChangeOption) (int64, error) {
	c, err := m.changing(opts)
	if err != nil {
		return 0, err
	}
	t, err := m.Task(ctx, id)
	if err != nil {
		return 0, err
	}
	spec, err := t.replaySpec(round)
	if err != nil || c.dry {
		return 0, err
	}
	opened, err := m.openBatch(ctx, store.OpenRequest{Key: store.NewToken(), Life: store.LoneRequest, Specs: []store.Spec{spec}})
	if err != nil {
		return 0, fmt.Errorf("replay of task %d: %w", id, err)
	}
	m.log.Info("replayed task", "task", id, "round", spec.ReplayRound, "new", opened[0].ID, "by", c.by)
	return opened[0].ID, nil
}

// replaySpec is the definition of the task that repeats a round of t.
func (t *Task) replaySpec(round int) (store.Spec, error) {
	if end := t.End(); !end.Ended() {
		return store.Spec{}, fmt.Errorf("task %d is %s: %w", t.ID, end, ErrNotEnded)
	}
	if len(t.Needs) > 0 {
		return store.Spec{}, fmt.Errorf("replay of task %d: %w", t.ID, ErrNeedsResults)
	}
	r, err := t.begunRound(round)
	if err != nil {
		return store.Spec{}, err
	}
	spec, err := definitionOf(t.ID, t.Fields)
	if err != nil {
		return spec, err
	}
	spec.ReplayOf, spec.ReplayRound = t.ID, r.Number
	spec.StartAfter, spec.EndBefore = "0", statemachine.Never.Text()
	spec.MaxFails, spec.MaxTimeouts, spec.MaxFaults = "0", "0", "0"
	spec.Step = "" // it is outside the plan
	spec.Source = pinned(spec.Source, r.ProgramSHA256)
	if err := spec.Check(); err != nil {
		return spec, fmt.Errorf("replay of task %d: %w", t.ID, err)
	}
	return spec, nil
}

// begunRound is a round that a worker has begun; the last one for LastRound.
func (t *Task) begunRound(n int) (Round, error) {
	last := t.Last()
	if n == LastRound && last.Number >= 0 {
		return last, nil
	}
	for _, r := range t.Rounds() {
		if _, begun := r.Stamps[string(statemachine.Running)]; begun && r.Number == n {
			return r, nil
		}
	}
	if last.Number < 0 {
		return Round{}, fmt.Errorf("task %d: no worker has begun it: %w", t.ID, ErrNoRound)
	}
	return Round{}, fmt.Errorf("task %d, round %d: %w; the last one is %d", t.ID, n, ErrNoRound, last.Number)
}

// pinned is the source with the hash that its content must have, unless it has
// one, or is of a kind that has none.
func pinned(source, hash string) string {
	src, err := fetch.ParseSource(source)
	if err != nil || src.SHA256 != "" || hash == "" {
		return source
	}
	with := source + "#sha256=" + hash
	if _, err := fetch.ParseSource(with); err != nil {
		return source
	}
	return with
}
