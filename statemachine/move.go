package statemachine

import (
	"strconv"
	"strings"
)

// Move is a decision: if the task is still in From, in Round, and held under
// Claim (for fenced moves) or at revision Rev (for all others), it goes to To.
type Move struct {
	ID    int64
	Event Event
	Actor Actor

	From  State
	Round int
	// Fenced moves compare Claim, the others Rev.
	Fenced bool
	Claim  string
	Rev    int64

	To        State
	Via       Stamp
	Count     Counter
	NextRound bool
	// AskStop moves mark the task and leave state, round, deadline and stamps as
	// they are.
	AskStop bool
	// StopAsked is whether the decision was made knowing that a stop was asked
	// for. Fenced moves do not compare the revision, so a worker's decision to
	// open the task again may cross the asking (see [ErrStopAsked]).
	StopAsked bool
	// Failed is carried by Report: the round's error text is not empty. So are
	// Class, ExitCode and HasExit, those of the [Round].
	Failed   bool
	Class    Class
	ExitCode int
	HasExit  bool
	// NotBefore is until when the task rests that the move opens again, or 0:
	// then the task's own stays as it is.
	NotBefore Time
	// Deadline is when the server must look at the task after the move, or
	// Never. The claim computes its own, because it depends on the claim's time.
	Deadline Time
}

// Edge is one step of a move as the task's log names it.
type Edge struct{ From, To string }

// Edges returns the steps the log records: through the stamp where there is one,
// and none for AskStop.
func (m *Move) Edges() []Edge {
	if m.AskStop {
		return nil
	}
	if m.Via == "" {
		return []Edge{{string(m.From), string(m.To)}}
	}
	return []Edge{{string(m.From), string(m.Via)}, {string(m.Via), string(m.To)}}
}

// Stamps returns the hash fields that get the time of the move, each of the
// form "<round>:<name>". The stamp of the way belongs to the round that ends,
// the one of the new state to the round the task is in afterwards. AskStop has
// none.
func (m *Move) Stamps() []string {
	if m.AskStop {
		return nil
	}
	stamps := make([]string, 0, 2)
	if m.Via != "" {
		stamps = append(stamps, RoundField(m.Round, string(m.Via)))
	}
	return append(stamps, RoundField(m.ToRound(), string(m.To)))
}

// ToRound is the round of the task after the move.
func (m *Move) ToRound() int {
	if m.NextRound {
		return m.Round + 1
	}
	return m.Round
}

// Outcome is the end state to remember when the move archives, else None.
func (m *Move) Outcome() State {
	if m.To == Archived {
		return m.From
	}
	return None
}

// RoundField returns the name of a per-round hash field: "3:running".
func RoundField(round int, name string) string {
	return strconv.Itoa(round) + ":" + name
}

// CutRoundField takes the name of a per-round hash field apart: "3:running" is
// round 3, field "running". It is the inverse of [RoundField]; ok is false for
// every text that RoundField cannot have made for a round and a field that is
// not empty.
func CutRoundField(name string) (round int, field string, ok bool) {
	number, field, found := strings.Cut(name, ":")
	round, err := strconv.Atoi(number)
	if err != nil || round < 0 || !found || field == "" || strconv.Itoa(round) != number {
		return 0, "", false
	}
	return round, field, true
}
