package manager

import (
	"context"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
)

// read reads what Summary tells. The state is that of the set that lists the
// task, if the ids come from there: also where the record is spoilt or another
// client's.
func (s *selector) read(ctx context.Context, state statemachine.State, ids []int64) ([]Summary, error) {
	names := slices.Concat(SummaryFields(), s.sel.Fields)
	found, err := s.m.store.Fields(ctx, ids, names...)
	if err != nil {
		return nil, err
	}
	tasks := make([]Summary, len(ids))
	for i, fields := range found {
		tasks[i] = newSummary(ids[i], state, fields)
	}
	if state == statemachine.None {
		err = s.confirm(ctx, tasks)
	}
	return tasks, err
}

func newSummary(id int64, listed statemachine.State, fields map[string]string) Summary {
	if fields == nil {
		fields = map[string]string{}
	}
	t := Summary{
		ID: id, State: statemachine.State(fields["state"]), Outcome: statemachine.State(fields["outcome"]),
		Round: int(number(fields["round"])), Program: fields["program"], Queue: orText(fields["queue"], DefaultQueue),
		Priority: int(number(fields["priority"])), Fields: fields,
	}
	if listed != statemachine.None {
		t.listedIn(listed)
	}
	return t
}

// listedIn corrects the state by the set that lists the task: the original leaves
// the state of an archived one at its outcome.
func (s *Summary) listedIn(state statemachine.State) {
	if state == statemachine.Archived && s.State.Ended() {
		s.Outcome = s.State
	}
	s.State = state
}

// confirm asks of tasks that have ended whether the original has archived them.
func (s *selector) confirm(ctx context.Context, tasks []Summary) error {
	var ended []*Summary
	for i := range tasks {
		if tasks[i].State.Ended() {
			ended = append(ended, &tasks[i])
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
				t.listedIn(statemachine.Archived)
			}
		}
	}
	return nil
}

// errorsAtOnce bounds how many error texts are read in one call: each may be
// large.
const errorsAtOnce = 50

// mostError is how much of an error a Summary keeps, in bytes.
const mostError = 1024

// readErrors reads the errors of the last rounds, if they are asked for.
func (s *selector) readErrors(ctx context.Context, tasks []Summary) error {
	if s.sel.Match == nil {
		return nil
	}
	byRound := map[int][]*Summary{}
	for i := range tasks {
		if round := tasks[i].lastBegun(); round >= 0 {
			byRound[round] = append(byRound[round], &tasks[i])
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
				return err
			}
			for i, t := range part {
				text := found[i][name]
				t.matched = s.sel.Match.MatchString(text)
				t.Error = strings.Clone(text[:min(len(text), mostError)])
			}
		}
	}
	return nil
}

// lastBegun is the last round that a worker has begun, -1 if there is none.
func (s *Summary) lastBegun() int { return lastBegun(s.State, s.Outcome, s.Round) }

// lastBegun is the last round that a worker has begun of a task that is in a
// round and a state; -1 if there is none. A task that is called off or expires
// while it waits has not begun its round.
func lastBegun(state, outcome statemachine.State, round int) int {
	end := (&statemachine.Task{State: state, Outcome: outcome}).End()
	switch end {
	case statemachine.Open, statemachine.Blocked, statemachine.Cancelled:
		return round - 1
	default:
		return round
	}
}
