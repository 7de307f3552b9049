package manager

import (
	"context"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// read reads tasks, as far as [SummaryFields] and Selection.Fields go. The state is that of the set that lists the
// task, if the ids come from there: also where the record is spoilt or another
// client's.
func (s *selector) read(ctx context.Context, state statemachine.State, ids []int64) ([]*task.Task, error) {
	names := slices.Concat(SummaryFields(), s.sel.Fields)
	found, err := s.m.store.Fields(ctx, ids, names...)
	if err != nil {
		return nil, err
	}
	tasks := make([]*task.Task, len(ids))
	for i, fields := range found {
		tasks[i] = listed(ids[i], state, fields)
	}
	if state == statemachine.None {
		err = s.confirm(ctx, tasks)
	}
	return tasks, err
}

// listed is a task of which some fields were read, in the state of the set that lists it.
func listed(id int64, state statemachine.State, fields map[string]string) *task.Task {
	if fields == nil {
		fields = map[string]string{}
	}
	t := task.Decode(id, fields)
	if state != statemachine.None {
		t.ListedIn(state)
	}
	return t
}

// confirm asks of tasks that have ended whether the original has archived them.
func (s *selector) confirm(ctx context.Context, tasks []*task.Task) error {
	var ended []*task.Task
	for i := range tasks {
		if tasks[i].State.Ended() {
			ended = append(ended, tasks[i])
		}
	}
	for part := range slices.Chunk(ended, changeRead) {
		ids := make([]int64, len(part))
		for i, t := range part {
			ids[i] = t.ID
		}
		found, _, err := s.m.store.Inspect(ctx, ids)
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

// errorsAtOnce bounds how many error texts are read in one call: each may be
// large.
const errorsAtOnce = 50

// mostError is how much of an error a selected task keeps, in bytes.
const mostError = 1024

// matching reads the errors of the last rounds, if they are asked for, and leaves out the tasks that have another one.
func (s *selector) matching(ctx context.Context, tasks []*task.Task) ([]*task.Task, error) {
	if s.sel.Match == nil {
		return tasks, nil
	}
	matched := map[*task.Task]bool{}
	byRound := map[int][]*task.Task{}
	for _, t := range tasks {
		if round := lastBegun(t); round >= 0 {
			byRound[round] = append(byRound[round], t)
		}
	}
	for round, those := range byRound {
		name := statemachine.RoundField(round, "error")
		for part := range slices.Chunk(those, errorsAtOnce) {
			ids := make([]int64, len(part))
			for i, t := range part {
				ids[i] = t.ID
			}
			found, err := s.m.store.Fields(ctx, ids, name)
			if err != nil {
				return nil, err
			}
			for i, t := range part {
				if text := found[i][name]; s.sel.Match.MatchString(text) {
					matched[t] = true
					t.Rounds = []task.Round{{Number: round, Error: strings.Clone(text[:min(len(text), mostError)])}}
				}
			}
		}
	}
	return slices.DeleteFunc(tasks, func(t *task.Task) bool { return !matched[t] }), nil
}

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
