package statemachine

import (
	"fmt"
	"slices"
)

// Decide answers what o does to t at the moment now. It returns a
// *[TransitionError] if the table has no row for it, an error matching
// [ErrStale] if a worker speaks for a round it does not hold, and one matching
// [ErrNotDue] if the table has rows but no condition holds now. The task is
// not changed; [Apply] or the store's move script carries the move out.
func Decide(t *Task, o Occurrence, now Time) (Move, error) {
	return decideIn(table, t, o, now)
}

// decideIn is Decide over any table, so that tests can show that each row counts.
func decideIn(rows []Transition, t *Task, o Occurrence, now Time) (Move, error) {
	known := false
	for i := range rows {
		row := &rows[i]
		if row.From != t.State || row.Event != o.Event || !slices.Contains(row.Actors, o.Actor) {
			continue
		}
		if row.Fenced && (o.Claim == "" || o.Claim != t.Current.Claim || o.Round != t.Round) {
			return Move{}, fmt.Errorf("task %d, round %d: %w", t.ID, o.Round, ErrStale)
		}
		if row.When.holds(t, o, now) {
			return row.move(t, o), nil
		}
		known = true
	}
	if known {
		return Move{}, fmt.Errorf("task %d is %s: %s: %w", t.ID, t.State, o.Event, ErrNotDue)
	}
	return Move{}, &TransitionError{ID: t.ID, From: t.State, Event: o.Event, Actor: o.Actor}
}

func (row *Transition) move(t *Task, o Occurrence) Move {
	m := Move{
		ID: t.ID, Event: o.Event, Actor: o.Actor,
		From: t.State, Round: t.Round, Fenced: row.Fenced, Rev: t.Rev,
		To: row.To, Via: row.Via, Count: row.Count, NextRound: row.NextRound,
		Deadline: Never,
	}
	if row.Fenced || row.Event == Claim {
		m.Claim = o.Claim
	}
	if row.Event == Report {
		m.Failed = o.Failed
	}
	if row.To == Open || row.To == Blocked {
		m.Deadline = t.EndBefore
	}
	return m
}
