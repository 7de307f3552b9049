// Package trace replays the event stream of a namespace against the pure state
// machine: it says of each task whether the path that was recorded is one that
// the table of [statemachine] allows, made by actors that may make it.
//
// What it does not know it does not hold against a task. A capped stream begins
// in the middle of lives. Clients in other languages move tasks with plain
// commands and leave no events, so a step may be missing if such a client can
// make it: open a task, claim it, report its own round, archive an outcome. A
// repair by the server or a manager may put a task anywhere.
//
// Check needs the stream as Redis has it at one moment. A copy that was taken
// while Redis forgot its last steps (failover, restored backup) holds steps that
// never happened as far as the namespace is concerned, and is no trace of it.
package trace

import (
	"fmt"
	"slices"
	"strings"

	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Problem is a step that the machine does not allow.
type Problem struct {
	// Event is the step.
	Event task.Event
	// Text says what is wrong with it.
	Text string
}

// String is the problem in a line.
func (p Problem) String() string {
	e := &p.Event
	return fmt.Sprintf("#%d: %s %s task %d: %s -> %s, round %d: %s", e.Seq,
		strings.TrimSpace(string(e.Actor)+" "+e.By), e.Event, e.ID, told(e.From), told(e.To), e.Round, p.Text)
}

func told(s sm.State) string {
	if s == sm.None {
		return "nothing"
	}
	return string(s)
}

// Check replays events, in the order of the stream, and returns what the machine
// does not allow, in that order; nothing if all is well. After a problem a task
// is taken to be where the event says, so that each is told once.
//
// Ids are given out in order. So a task with an id above that of a task whose
// creation is recorded was created later, and has no beginning missing, unless a
// foreign client has opened it.
func Check(events []task.Event) []Problem {
	c := newChecker(events)
	var problems []Problem
	for _, e := range events {
		if text := c.step(e); text != "" {
			problems = append(problems, Problem{Event: e, Text: text})
		}
	}
	return problems
}

// checker knows where each task may be after the events so far.
type checker struct {
	// rows are those of the table, by event and the state before it.
	rows  map[cause][]sm.Transition
	tasks map[int64][]place
	// first is the lowest id whose creation is recorded, or 0; seq is the highest number of an event so far.
	first, seq int64
	// last is the newest event of each task.
	last map[int64]task.Event
}

type cause struct {
	event sm.Event
	from  sm.State
}

func newChecker(events []task.Event) *checker {
	c := &checker{rows: map[cause][]sm.Transition{}, tasks: map[int64][]place{}, last: map[int64]task.Event{}}
	for _, row := range sm.Table() {
		if between := sm.State(row.Via); between.Valid() { // two events, the first as if that were all
			row = sm.Transition{From: between, Event: sm.Settle, Actors: row.Actors, When: row.When, To: row.To, Fenced: row.Fenced}
		}
		if row.Event == sm.Archive { // what ends a task may archive it too
			row.Actors = sm.Actors()
		}
		c.rows[cause{row.Event, row.From}] = append(c.rows[cause{row.Event, row.From}], row)
	}
	for i := range events {
		if e := &events[i]; e.Event == sm.Create && (c.first == 0 || e.ID < c.first) {
			c.first = e.ID
		}
	}
	return c
}

// step carries e out and says what is wrong with it, or nothing.
func (c *checker) step(e task.Event) (text string) {
	if e.Seq <= c.seq {
		text = fmt.Sprintf("it comes after #%d", c.seq)
	}
	if text == "" {
		text = c.apart(e)
	}
	c.seq, c.last[e.ID] = max(c.seq, e.Seq), e
	at, seen := c.tasks[e.ID]
	switch {
	case e.Event == task.Repair:
		c.tasks[e.ID] = anywhere(e.To, e.Round)
		if text == "" {
			text = checkRepair(e)
		}
		return text
	case at == nil && e.From != sm.None && (seen || c.first == 0 || e.ID <= c.first):
		at = anywhere(e.From, e.Round)
	case at == nil:
		at = []place{{state: sm.None}}
	}
	next := c.after(at, e)
	if len(next) == 0 {
		if text == "" {
			text = c.why(at, e)
		}
		next = c.believed(e)
	}
	c.tasks[e.ID] = next
	return text
}

// apart says that a worker has settled a round, or that who is no manager has archived a task, but not in the move that reports
// or ends it, which is the task's event before, of the same moment.
func (c *checker) apart(e task.Event) string {
	p, seen := c.last[e.ID]
	together := p.At.Equal(e.At) && p.Round == e.Round && p.Actor == e.Actor && p.By == e.By
	switch {
	case !seen:
	case e.Event == sm.Settle && e.Actor == sm.Worker && (!together || p.Event != sm.Report):
		return "a worker settles a round only in the move that reports it"
	case e.Event == sm.Archive && e.Actor != sm.Manager && (!together || p.To != e.From):
		return "only a manager archives a task in a move of its own"
	}
	return ""
}

// checkRepair: repairs are made by the server, or by a manager that was told to.
func checkRepair(e task.Event) string {
	switch {
	case e.Actor != sm.Server && e.Actor != sm.Manager:
		return fmt.Sprintf("%q does not repair", e.Actor)
	case e.To != sm.None && !e.To.Valid():
		return fmt.Sprintf("there is no state %q", e.To)
	default:
		return ""
	}
}

// after is where a task that may be at any of these places may be once e has
// happened to it; nowhere if e cannot have happened.
func (c *checker) after(at []place, e task.Event) []place {
	var next []place
	for _, p := range foreign(at) {
		if p.state != e.From || p.round != e.Round {
			continue
		}
		for _, row := range c.takes(p, e) {
			if n := p.moved(row); row.To == e.To && !slices.Contains(next, n) {
				next = append(next, n)
			}
		}
	}
	return next
}

// takes are the rows that e may take at p. As in [sm.Decide] they are tried in
// order, and one that certainly holds is the last.
func (c *checker) takes(p place, e task.Event) []sm.Transition {
	var rows []sm.Transition
	for _, row := range c.rows[cause{e.Event, p.state}] {
		if !slices.Contains(row.Actors, e.Actor) {
			continue
		}
		if row.Fenced && p.foreign {
			return nil
		}
		possible, certain := p.holds(row)
		if possible {
			rows = append(rows, row)
		}
		if certain {
			break
		}
	}
	return rows
}

// believed is where e, which is wrong, says that the task is now.
func (c *checker) believed(e task.Event) []place {
	again := func(row sm.Transition) bool { return row.To == e.To && row.NextRound }
	if slices.ContainsFunc(c.rows[cause{e.Event, e.From}], again) {
		return anywhere(e.To, e.Round+1)
	}
	return anywhere(e.To, e.Round)
}

// Where is the state and round of a task.
type Where struct {
	State sm.State
	Round int
}

// Ends is where the events leave each task that they name. A task is missing if
// the last thing that happened to it is a repair that set it aside.
func Ends(events []task.Event) map[int64]Where {
	c := newChecker(events)
	for _, e := range events {
		c.step(e)
	}
	ends := make(map[int64]Where, len(c.tasks))
	for id, at := range c.tasks {
		if len(at) > 0 {
			ends[id] = Where{at[0].state, at[0].round}
		}
	}
	return ends
}

// MayBe reports whether a task that the events have left at w can be found at
// other: it is there, or foreign clients have moved it on.
func (w Where) MayBe(other Where) bool {
	return slices.ContainsFunc(foreign(anywhere(w.State, w.Round)), func(p place) bool {
		return p.state == other.State && p.round == other.Round
	})
}

// place is where a task may be, as far as later steps depend on it.
type place struct {
	state sm.State
	round int
	// stop says that a stop was asked for; foreign, that the round was claimed by
	// a client that leaves no events.
	stop, foreign bool
}

// anywhere is every place of a task of which only state and round are known;
// none if not even these are.
func anywhere(s sm.State, round int) []place {
	if s == sm.None || round < 0 {
		return nil
	}
	return []place{{s, round, false, false}, {s, round, false, true}, {s, round, true, false}, {s, round, true, true}}
}

// moved is where the task is once row was taken.
func (p place) moved(row sm.Transition) place {
	p.state = row.To
	p.stop = p.stop || row.AskStop
	if row.NextRound {
		p.round++
	}
	if row.NextRound || row.Event == sm.Claim {
		p.foreign = false
	}
	return p
}

// foreign adds the places to which foreign clients may have moved the task
// without an event.
func foreign(at []place) []place {
	at = slices.Clone(at)
	for i := 0; i < len(at); i++ {
		p := at[i]
		switch {
		case p.state == sm.None:
			p.state = sm.Open
		case p.state == sm.Open:
			p.state, p.foreign = sm.Running, true
		case p.state == sm.Running && p.foreign:
			p.state = sm.Executed
		case p.state.IsOutcome():
			p.state = sm.Archived
		default:
			continue
		}
		if !slices.Contains(at, p) {
			at = append(at, p)
		}
	}
	return at
}

// holds says whether a row can be taken at p, and whether it certainly is. Times, limits and what the program
// said are not recorded. To ask for a stop again changes nothing, and is no step.
func (p place) holds(row sm.Transition) (possible, certain bool) {
	if row.AskStop && p.stop {
		return false, false
	}
	return row.Could(p.foreign, p.stop)
}

// why says what is wrong with e, of a task that may be at any of these places.
func (c *checker) why(at []place, e task.Event) string {
	rows := slices.DeleteFunc(slices.Clone(c.rows[cause{e.Event, e.From}]), func(row sm.Transition) bool {
		return row.To != e.To || !slices.Contains(row.Actors, e.Actor)
	})
	all := foreign(at)
	there := slices.ContainsFunc(all, func(p place) bool { return p.state == e.From && p.round == e.Round })
	switch {
	case len(rows) == 0:
		return fmt.Sprintf("the table has no such step of a %s", e.Actor)
	case !there:
		return "the task was at " + places(at)
	case slices.ContainsFunc(all, func(p place) bool { return p.foreign && p.state == e.From }) && rows[0].Fenced:
		return "nobody has recorded a claim of this round"
	case rows[0].AskStop && !slices.ContainsFunc(all, func(p place) bool { return !p.stop }):
		return "a stop was asked for before"
	default:
		return "the table has this step under another condition only: " + string(rows[0].When)
	}
}

// places tells each state and round once.
func places(at []place) string {
	var names []string
	for _, p := range at {
		if name := fmt.Sprintf("%s, round %d", told(p.state), p.round); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}
