package trace

import (
	"fmt"
	"strconv"
	"strings"

	sm "github.com/tdf-go/tdf/statemachine"
)

// Repair is the event of a task that was put right because its records
// disagreed. The state machine does not know it.
const Repair sm.Event = "repair"

// Event is one entry of the stream: one step of one task.
type Event struct {
	ID int64 `json:"id"`
	// Round is the round the task was in before the step; -1 in a repair of a task
	// whose round could not be read. A step that opens the task again leaves it in
	// the next one.
	Round int      `json:"round"`
	From  sm.State `json:"from"`
	To    sm.State `json:"to"`
	Event sm.Event `json:"event"`
	Actor sm.Actor `json:"actor"`
	// By is the name of the program, for people.
	By string `json:"by"`
	// Seq is the number of the step in the namespace. Numbers rise, with gaps:
	// some changes are counted and are no steps.
	Seq int64 `json:"seq"`
	// At is when it happened on the clock of Redis, 0 if that cannot be read.
	At sm.Time `json:"at"`
}

// String is the event in a line, for reports.
func (e Event) String() string {
	return fmt.Sprintf("#%d: %s %s task %d: %s -> %s, round %d", e.Seq, named(e.Actor, e.By), e.Event, e.ID, told(e.From), told(e.To), e.Round)
}

func named(actor sm.Actor, by string) string {
	if by == "" {
		return string(actor)
	}
	return string(actor) + " " + by
}

func told(s sm.State) string {
	if s == sm.None {
		return "nothing"
	}
	return string(s)
}

// Parse reads an entry of the stream: its id there, of the form "<seq>-0", and its
// fields. It returns a *[sm.FieldError] for a malformed id, round or number.
// Names it has never heard of are for [Check].
func Parse(entry string, fields map[string]string) (Event, error) {
	e := Event{
		From: sm.State(fields["from"]), To: sm.State(fields["to"]),
		Event: sm.Event(fields["event"]), Actor: sm.Actor(fields["actor"]), By: fields["by"],
	}
	if at, err := sm.ParseTime(fields["at"]); err == nil {
		e.At = at
	}
	seq, _, _ := strings.Cut(entry, "-")
	round, err := number("round", fields["round"], 0)
	if err != nil && e.Event == Repair {
		round, err = -1, nil
	}
	e.Round = int(round)
	if err == nil {
		e.ID, err = number("id", fields["id"], 1)
	}
	if err == nil {
		e.Seq, err = number("seq", seq, 1)
	}
	if err != nil {
		return Event{}, err
	}
	return e, nil
}

func number(field, text string, least int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least {
		return 0, &sm.FieldError{Field: field, Value: text, Want: fmt.Sprintf("a whole number from %d on", least)}
	}
	return n, nil
}

// Problem is a step that the machine does not allow.
type Problem struct {
	// Event is the step.
	Event Event
	// Text says what is wrong with it.
	Text string
}

// String is the problem in a line.
func (p Problem) String() string { return p.Event.String() + ": " + p.Text }
