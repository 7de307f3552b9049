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
			return row.move(t, o, now), nil
		}
		known = true
	}
	if known {
		return Move{}, fmt.Errorf("task %d is %s: %s: %w", t.ID, t.State, o.Event, ErrNotDue)
	}
	return Move{}, &TransitionError{ID: t.ID, From: t.State, Event: o.Event, Actor: o.Actor}
}

func (row *Transition) move(t *Task, o Occurrence, now Time) Move {
	m := Move{
		ID: t.ID, Event: o.Event, Actor: o.Actor,
		From: t.State, Round: t.Round, Fenced: row.Fenced, Rev: t.Rev,
		To: row.To, Via: row.Via, Count: row.Count, NextRound: row.NextRound,
		AskStop: row.AskStop, StopAsked: t.StopAsked, Deadline: Never,
	}
	if row.Fenced || row.Event == Claim {
		m.Claim = o.Claim
	}
	if row.Event == Report {
		m.Failed, m.Class, m.ExitCode, m.HasExit = o.Failed, o.Class, o.ExitCode, o.HasExit
	}
	if row.To == Open || row.To == Blocked {
		m.Deadline = t.EndBefore
	}
	if row.NextRound {
		m.NotBefore = t.rest(row.Count, o.Random, now)
	}
	return m
}

// rest is until when the task rests once c has been raised, or 0. Only what went
// wrong with the task itself costs it time; a lost or draining worker does not.
func (t *Task) rest(c Counter, random float64, now Time) Time {
	if c != Fails && c != Timeouts && c != Faults {
		return 0
	}
	pause := t.Backoff.Pause(t.Fails+t.Timeouts+t.Faults+1, random)
	if pause == 0 {
		return 0
	}
	return min(now.Add(pause), latest)
}
