package statemachine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
			m := row.move(t, o, now)
			m.Archives = t.AtOnce && slices.ContainsFunc(rows, func(next Transition) bool {
				return next.From == row.To && next.Event == Archive
			})
			return m, nil
		}
		known = true
	}
	if known {
		return Move{}, fmt.Errorf("task %d is %s: %s: %w", t.ID, t.State, o.Event, ErrNotDue)
	}
	return Move{}, &TransitionError{id: t.ID, from: t.State, event: o.Event, actor: o.Actor}
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
		m.Failed, m.Class, m.ExitCode, m.HasExit, m.Retry = o.Failed, o.Class, o.ExitCode, o.HasExit, o.Retry
	}
	if row.When == succeededInTime {
		m.Until = t.lastSuccess()
	}
	if row.To == Open || row.To == Blocked {
		m.Deadline = t.EndBefore
	}
	if row.NextRound {
		m.NotBefore = t.rest(row, o, now)
	}
	return m
}

// rest is until when the task rests after the row, or 0. What the worker said of
// the next round comes first. Else only what went wrong with the task itself costs
// it time; a lost or draining worker does not.
func (t *Task) rest(row *Transition, o Occurrence, now Time) Time {
	said, c := t.Current.Retry, row.Count
	if row.Event == HandBack {
		said = o.Retry
	}
	switch {
	case said != 0:
		return min(said, latest)
	case c != Fails && c != Timeouts && c != Faults:
		return 0
	}
	pause := t.Backoff.Pause(t.Fails+t.Timeouts+t.Faults+1, o.Random)
	if pause == 0 {
		return 0
	}
	return min(now.Add(pause), latest)
}

// Move is a decision: if the task is still in From, in Round, and held under
// Claim (for fenced moves) or at revision Rev (for all others), it goes to To.
type Move struct {
	ID    int64
	Event Event
	Actor Actor

	From  State
	Round int
	// Fenced moves compare Claim, the others Rev. One that settles (see [Move.Settles])
	// compares both.
	Fenced bool
	Claim  string
	Rev    int64

	To        State
	Via       string // a stamp, or empty
	Count     Counter
	NextRound bool
	// Archives says that the task goes on from To, which is an outcome, and is archived
	// (see [Task.AtOnce]).
	Archives bool
	// AskStop moves mark the task and leave state, round, deadline and stamps as
	// they are.
	AskStop bool
	// StopAsked is whether the decision was made knowing that a stop was asked
	// for. Fenced moves do not compare the revision, so a worker's decision to
	// open the task again may cross the asking (see [ErrStopAsked]).
	StopAsked bool
	// Failed is carried by Report: the round's error text is not empty. So are
	// Class, ExitCode, HasExit and Retry, those of the [Round].
	Failed   bool
	Class    Class
	ExitCode int
	HasExit  bool
	Retry    Time
	// NotBefore is until when the task rests that the move opens again, or 0:
	// then the task's own stays as it is.
	NotBefore Time
	// Until is, for a move that settles, the last moment at which it does.
	Until Time
	// Deadline is when the server must look at the task after the move, or
	// Never. The claim computes its own, because it depends on the claim's time.
	Deadline Time
}

// Edge is one step of a move as the task's log names it.
type Edge struct{ From, To string }

// Edges returns the steps the log records: through the stamp where there is one, on to
// the archive if the move archives, and none for AskStop.
func (m *Move) Edges() []Edge {
	if m.AskStop {
		return nil
	}
	edges := make([]Edge, 0, 3)
	from := string(m.From)
	if m.Via != "" {
		edges = append(edges, Edge{from, m.Via})
		from = m.Via
	}
	edges = append(edges, Edge{from, string(m.To)})
	if m.Archives {
		edges = append(edges, Edge{string(m.To), string(Archived)})
	}
	return edges
}

// End is the state that the move ends in.
func (m *Move) End() State {
	if m.Archives {
		return Archived
	}
	return m.To
}

// Stamps returns the hash fields that get the time of the move, each of the
// form "<round>:<name>". The stamp of the way belongs to the round that ends,
// the one of the new state to the round the task is in afterwards. AskStop has
// none.
func (m *Move) Stamps() []string {
	if m.AskStop {
		return nil
	}
	stamps := make([]string, 0, 3)
	if m.Via != "" {
		stamps = append(stamps, RoundField(m.Round, m.Via))
	}
	stamps = append(stamps, RoundField(m.ToRound(), string(m.To)))
	if m.Archives {
		stamps = append(stamps, RoundField(m.Round, string(Archived)))
	}
	return stamps
}

// ToRound is the round of the task after the move.
func (m *Move) ToRound() int {
	if m.NextRound {
		return m.Round + 1
	}
	return m.Round
}

// Settles reports whether the move is a report that settles its round as well. It
// goes only as far as [Move.Unsettled] where the task has changed since its claim, a
// stop was asked for, or it comes after Until: then a server judges.
func (m *Move) Settles() bool { return m.Event == Report && m.To == Succeeded }

// Unsettled is the move that only reports, and leaves the rest to a server.
func (m *Move) Unsettled() Move {
	plain := *m
	if m.Settles() {
		plain.To, plain.Via, plain.Until, plain.Archives = Executed, "", 0, false
	}
	return plain
}

// RoundField returns the name of a per-round hash field: "3:running".
func RoundField(round int, name string) string {
	return strconv.Itoa(round) + ":" + name
}

// ParseRoundField takes the name of a per-round hash field apart: "3:running" is
// round 3, field "running". It is the inverse of [RoundField]; ok is false for
// every text that RoundField cannot have made for a round and a field that is
// not empty.
func ParseRoundField(name string) (round int, field string, ok bool) {
	number, field, found := strings.Cut(name, ":")
	if !found || field == "" || number == "" || !digits(number) || number[0] == '0' && number != "0" {
		return 0, "", false
	}
	round, err := strconv.Atoi(number)
	if err != nil {
		return 0, "", false
	}
	return round, field, true
}

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
// stop that is asked for again is [Repeated]. A move that settles may go no further
// than [Move.Unsettled].
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
	return carriedOut(t, m.reaching(&t, now), now), Moved, nil
}

// reaching is how far m goes: one that settles only reports where the task has changed, or it is too late.
func (m *Move) reaching(t *Task, now Time) Move {
	if t.Rev != m.Rev || t.StopAsked || now > m.Until {
		return m.Unsettled()
	}
	return *m
}

// carriedOut is t once m has been carried out.
func carriedOut(t Task, m Move, now Time) Task {
	t.Rev++
	t.State = m.End()
	t.StopAsked = t.StopAsked || m.AskStop
	t.count(m.Count)
	t.record(m, now)
	switch {
	case m.Archives:
		t.Outcome = m.To
	case m.To == Archived:
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
		t.Current.Class, t.Current.ExitCode, t.Current.HasExit, t.Current.Retry = m.Class, m.ExitCode, m.HasExit, m.Retry
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
		return t.State == m.End() && t.Round == m.ToRound() && t.Rev == m.Rev+1
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

// Errors of this package, to be matched with errors.Is.
var (
	// ErrNotDue means the table knows the event in this state, but none of its
	// conditions holds now; ask again later.
	ErrNotDue = errors.New("not due")
	// ErrStale means a worker spoke for a round it no longer holds. Nothing
	// changed and nothing will; the worker drops the round.
	ErrStale = errors.New("stale claim: the round is no longer held by this worker")
	// ErrConflict means the task has changed since the decision was made.
	// Nothing changed; read the task again and decide anew.
	ErrConflict = errors.New("the task has changed since the decision was made")
	// ErrStopAsked means a worker wanted the task opened again and did not know
	// that a stop was asked for. Nothing changed and the round is still its own:
	// it notes [Task.StopAsked] and decides anew.
	ErrStopAsked = errors.New("a stop was asked for: the task is not opened again")
)

// TransitionError says that the table has no row for an event: in this state,
// by this actor, it is never allowed.
type TransitionError struct {
	id    int64
	from  State
	event Event
	actor Actor
}

// Error implements error.
func (e *TransitionError) Error() string {
	return fmt.Sprintf("task %d is %s: a %s cannot %s it", e.id, e.from, e.actor, e.event)
}

// FieldError says that a field of a task does not hold what it must.
type FieldError struct {
	// Field is the name of the Redis hash field.
	Field string `json:"field"`
	// Value is what was found there.
	Value string `json:"value"`
	// Want says what belongs there.
	Want string `json:"want"`
}

// Error implements error.
func (e *FieldError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%q is not %s", e.Value, e.Want)
	}
	return fmt.Sprintf("field %s: %q is not %s", e.Field, e.Value, e.Want)
}
