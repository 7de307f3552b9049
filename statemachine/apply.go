package statemachine

import "slices"

// Result is what became of a move.
type Result int

// The results of a move.
const (
	// Moved means the task was where the move expected it and has gone on.
	Moved Result = iota
	// Repeated means this move has been made before; nothing changed and the
	// caller may go on as if it had just been made. A move that is not fenced
	// may have been made by someone else who came to the same end from the same
	// revision.
	Repeated
	// Refused means the task is elsewhere; nothing changed.
	Refused
)

// Apply carries m out on a copy of t at the moment now, as the store's move
// script does in Redis: it compares first and writes after. A refused move
// comes with an error matching [ErrStale], [ErrConflict] or [ErrStopAsked]. A
// stop that is asked for again is [Repeated].
func Apply(t Task, m Move, now Time) (Task, Result, error) {
	switch at := t.State == m.From && t.Round == m.Round && t.matches(m); {
	case at && (!m.AskStop || !t.StopAsked):
	case t.repeats(m):
		return t, Repeated, nil
	case m.Fenced:
		return t, Refused, ErrStale
	default:
		return t, Refused, ErrConflict
	}
	if m.NextRound && t.StopAsked && !m.StopAsked {
		return t, Refused, ErrStopAsked
	}
	return carriedOut(t, m, now), Moved, nil
}

// carriedOut is t once m has been carried out.
func carriedOut(t Task, m Move, now Time) Task {
	t.Rev++
	t.State = m.To
	t.StopAsked = t.StopAsked || m.AskStop
	t.count(m.Count)
	t.record(m, now)
	if m.To == Archived {
		t.Outcome = m.From
	}
	if m.NextRound {
		t.Past = append(slices.Clip(t.Past), t.Current)
		t.Current = Round{}
		t.Round++
	}
	if m.NotBefore != 0 {
		t.NotBefore = m.NotBefore
	}
	return t
}

func (t *Task) matches(m Move) bool {
	if m.Fenced {
		return m.Claim != "" && t.Current.Claim == m.Claim
	}
	return t.Rev == m.Rev
}

// record writes what the move says about the round it was decided in.
func (t *Task) record(m Move, now Time) {
	switch m.Event {
	case Claim:
		t.Current.Claim, t.Current.Running = m.Claim, now
	case Report:
		t.Current.Executed, t.Current.Failed = now, m.Failed
		t.Current.Class, t.Current.ExitCode, t.Current.HasExit = m.Class, m.ExitCode, m.HasExit
	default: // the other events say nothing about a run
	}
	if m.Fenced {
		t.Current.End = m.Event
	}
}

// repeats recognises a move that has been made already: a fenced one by the
// claim and the event its round was closed with, a claim by its id, the asking
// for a stop by the mark, any other by the revision it would have made. A claim without an id is never a repeat:
// two foreign workers would both believe that the round is theirs.
func (t *Task) repeats(m Move) bool {
	if m.Event == Claim {
		return m.Claim != "" && t.State == m.To && t.Round == m.Round && t.Current.Claim == m.Claim
	}
	if m.AskStop {
		return t.StopAsked && t.State == m.To && t.Round == m.Round
	}
	if !m.Fenced {
		return t.State == m.To && t.Round == m.ToRound() && t.Rev == m.Rev+1
	}
	r, ok := t.round(m.Round)
	return ok && m.Claim != "" && r.Claim == m.Claim && r.End == m.Event
}

func (t *Task) round(n int) (Round, bool) {
	switch {
	case n == t.Round:
		return t.Current, true
	case n >= 0 && n < len(t.Past):
		return t.Past[n], true
	default:
		return Round{}, false
	}
}
