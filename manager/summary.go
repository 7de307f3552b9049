package manager

import (
	"context"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// summaries reads tasks, as far as summaryFields and others go. The state is that of the set that lists the tasks, if the
// ids come from there: also where a record is spoilt or another client's.
func (m *Manager) summaries(ctx context.Context, state statemachine.State, ids []int64, others ...string) ([]*task.Task, error) {
	found, err := m.store.Fields(ctx, ids, slices.Concat(summaryFields, others)...)
	if err != nil {
		return nil, err
	}
	tasks := make([]*task.Task, len(ids))
	for i, fields := range found {
		if fields == nil {
			fields = map[string]string{}
		}
		tasks[i] = task.Decode(ids[i], fields)
		if state != statemachine.None {
			tasks[i].ListedIn(state)
		}
	}
	return tasks, nil
}

// confirm asks of tasks that have ended whether the original has archived them.
func (s *selector) confirm(ctx context.Context, tasks []*task.Task) error {
	var ended []*task.Task
	for _, t := range tasks {
		if t.State.IsOutcome() {
			ended = append(ended, t)
		}
	}
	for part := range slices.Chunk(ended, changeRead) {
		found, _, err := s.m.store.Inspect(ctx, idsOf(part))
		if err != nil {
			return err
		}
		for i, t := range part {
			if slices.Contains(found[i].Listed, statemachine.Archived) {
				t.ListedIn(statemachine.Archived)
			}
		}
	}
	return nil
}

// mostError is how much of an error a selected task keeps, in bytes.
const mostError = 1024

func headOf(text string) string { return strings.Clone(text[:min(len(text), mostError)]) }

// matching reads the errors of the last rounds, if they are asked for, and leaves out the tasks that have another one.
func (s *selector) matching(ctx context.Context, tasks []*task.Task) ([]*task.Task, error) {
	if s.sel.Match == nil {
		return tasks, nil
	}
	matched := map[*task.Task]bool{}
	err := s.m.eachRound(ctx, tasks, lastBegun, []string{"error"}, func(t *task.Task, r task.Round) {
		if s.sel.Match.MatchString(r.Error) {
			matched[t] = true
			t.Rounds = []task.Round{{Number: r.Number, Error: headOf(r.Error)}}
		}
	})
	return slices.DeleteFunc(tasks, func(t *task.Task) bool { return !matched[t] }), err
}

// errorsAtOnce bounds of how many tasks the error of a round is read in one call: it may be large.
const errorsAtOnce = 50

// eachRound reads fields of one round of each task, those of the same round number together. of is the number, -1 for none.
func (m *Manager) eachRound(
	ctx context.Context, tasks []*task.Task, of func(*task.Task) int, names []string, take func(*task.Task, task.Round),
) error {
	page := maxPage
	if slices.Contains(names, "error") {
		page = errorsAtOnce
	}
	byRound := map[int][]*task.Task{}
	for _, t := range tasks {
		if n := of(t); n >= 0 {
			byRound[n] = append(byRound[n], t)
		}
	}
	for n, those := range byRound {
		fields := make([]string, len(names))
		for i, name := range names {
			fields[i] = statemachine.RoundField(n, name)
		}
		for part := range slices.Chunk(those, page) {
			found, err := m.store.Fields(ctx, idsOf(part), fields...)
			if err != nil {
				return err
			}
			for i, t := range part {
				rounds := task.Decode(t.ID, found[i]).Rounds
				take(t, append(rounds, task.Round{Number: n})[0])
			}
		}
	}
	return nil
}

func presentRound(t *task.Task) int { return t.Round }

// lastBegun is the last round that a worker has begun, by the state; -1 if there
// is none. A task that is called off or expires while it waits has not begun its round.
func lastBegun(t *task.Task) int {
	switch t.End() {
	case statemachine.Open, statemachine.Blocked, statemachine.Cancelled:
		return t.Round - 1
	default:
		return t.Round
	}
}

func idsOf(tasks []*task.Task) []int64 {
	ids := make([]int64, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	return ids
}
