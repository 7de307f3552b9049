package trace

import (
	"fmt"
	"slices"

	sm "github.com/tdf-go/tdf/statemachine"
)

// Check replays events, in the order of the stream, and returns what the machine
// does not allow, in that order; nothing if all is well. After a problem a task
// is taken to be where the event says, so that each is told once.
//
// Ids are given out in order. So a task with an id above that of a task whose
// creation is recorded was created later, and has no beginning missing, unless a
// foreign client has opened it.
func Check(events []Event) []Problem {
	c := checker{rows: sm.Table(), tasks: map[int64][]place{}, first: firstCreated(events)}
	var problems []Problem
	for _, e := range events {
		if text := c.step(e); text != "" {
			problems = append(problems, Problem{Event: e, Text: text})
		}
	}
	return problems
}

// firstCreated is the lowest id whose creation is recorded, or 0.
func firstCreated(events []Event) int64 {
	var first int64
	for i := range events {
		if e := &events[i]; e.Event == sm.Create && (first == 0 || e.ID < first) {
			first = e.ID
		}
	}
	return first
}

// checker knows where each task may be after the events so far.
type checker struct {
	rows  []sm.Transition
	tasks map[int64][]place
	first int64
	seq   int64
}

// step carries e out and says what is wrong with it, or nothing.
func (c *checker) step(e Event) string {
	text := c.order(e)
	at, seen := c.tasks[e.ID]
	switch {
	case e.Event == Repair:
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

// order checks that e comes after what came before it.
func (c *checker) order(e Event) string {
	before := c.seq
	c.seq = max(c.seq, e.Seq)
	if e.Seq <= before {
		return fmt.Sprintf("it comes after #%d", before)
	}
	return ""
}

// checkRepair: repairs are made by the server, or by a manager that was told to.
func checkRepair(e Event) string {
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
func (c *checker) after(at []place, e Event) []place {
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
func (c *checker) takes(p place, e Event) []*sm.Transition {
	var rows []*sm.Transition
	for i := range c.rows {
		row := &c.rows[i]
		if row.From != p.state || row.Event != e.Event || !slices.Contains(row.Actors, e.Actor) {
			continue
		}
		if row.Fenced && p.foreign {
			return nil
		}
		holds := p.holds(row)
		if holds != no {
			rows = append(rows, row)
		}
		if holds == yes {
			break
		}
	}
	return rows
}

// believed is where e, which is wrong, says that the task is now.
func (c *checker) believed(e Event) []place {
	for i := range c.rows {
		if row := &c.rows[i]; row.Event == e.Event && row.From == e.From && row.To == e.To && row.NextRound {
			return anywhere(e.To, e.Round+1)
		}
	}
	return anywhere(e.To, e.Round)
}
