package statemachine

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// cell is one place of the matrix.
type cell struct {
	from  State
	event Event
	actor Actor
}

// probe asks one cell one question whose answer was written by hand.
type probe struct {
	name string
	// task and asked change the sample task and the sample occurrence.
	task  func(*Task)
	asked func(*Occurrence)
	// now is the moment of the question; 0 is [sampleNow].
	now Time
	// err is the expected refusal; if nil, the answer is want.
	err  error
	want want
}

// want is what a row must say, beside what every move copies from the task.
type want struct {
	to     State
	via    string
	count  Counter
	next   bool
	fenced bool
	stop   bool
	rest   Time
	until  Time
}

const (
	at100     = Time(100 * Second)
	at200     = Time(200 * Second)
	claimedAt = Time(150 * Second)
	sampleNow = Time(155 * Second)
)

// sample is a task in its third round, far from every limit and deadline.
func sample(state State) Task {
	t := Task{
		ID: 7, State: state, Round: 2, Rev: 40,
		Fails: 1, Timeouts: 1,
		StartAfter: at100, EndBefore: at200, Timeout: 10 * Second,
		MaxFails: 5, MaxTimeouts: 5, MaxLosses: 5, MaxFaults: 5,
		Past: []Round{
			{Claim: "a", Running: at100, Executed: at100 + 1, Failed: true, End: Report},
			{Claim: "b", Running: at100 + 2},
		},
	}
	switch {
	case state == Running:
		t.Current = Round{Claim: "c", Running: claimedAt}
	case state == Executed || state.Terminal():
		t.Current = Round{Claim: "c", Running: claimedAt, Executed: claimedAt + 1, End: Report}
	}
	return t
}

// checkMatrix asks every cell of state x event x actor and returns what is not
// as written by hand in [expected]. Beyond a number of faults it does not go on.
func checkMatrix(rows []Transition, enough int) []string {
	var faults []string
	cells := expected()
	for _, from := range append([]State{None, "unheard_of"}, States()...) {
		for _, event := range append(Events(), "unheard_of") {
			for _, actor := range append(Actors(), "unheard_of") {
				c := cell{from, event, actor}
				faults = append(faults, checkCell(rows, c, cells[c])...)
				if len(faults) >= enough {
					return faults
				}
			}
		}
	}
	return faults
}

func checkCell(rows []Transition, c cell, probes []probe) []string {
	if probes == nil {
		return checkAbsent(rows, c)
	}
	var faults []string
	for _, p := range probes {
		if fault := p.check(rows, c); fault != "" {
			faults = append(faults, fmt.Sprintf("%s, %s by %s: %s: %s", c.from, c.event, c.actor, p.name, fault))
		}
	}
	return faults
}

// checkAbsent requires a *TransitionError, whatever the time.
func checkAbsent(rows []Transition, c cell) []string {
	for _, now := range []Time{0, sampleNow, at200 + 1, Never} {
		task, before := sample(c.from), sample(c.from)
		move, err := decideIn(rows, &task, Occurrence{Event: c.event, Actor: c.actor, Claim: "c", Round: 2}, now)
		var refused *TransitionError
		switch {
		case !errors.As(err, &refused):
			return []string{fmt.Sprintf("%s, %s by %s: want a *TransitionError, got %v, %v", c.from, c.event, c.actor, move, err)}
		case *refused != (TransitionError{id: 7, from: c.from, event: c.event, actor: c.actor}):
			return []string{fmt.Sprintf("the error names something else: %+v", *refused)}
		case move != (Move{}) || !reflect.DeepEqual(task, before):
			return []string{"a refusal left something behind"}
		}
	}
	return nil
}

func (p *probe) check(rows []Transition, c cell) string {
	task, o, now := p.question(c)
	before := task
	got, err := decideIn(rows, &task, o, now)
	if !errors.Is(err, p.err) {
		return fmt.Sprintf("error %v, want %v", err, p.err)
	}
	if !reflect.DeepEqual(before, task) {
		return "the task was changed: " + cmp.Diff(before, task)
	}
	var wanted Move
	if p.err == nil {
		wanted = p.want.move(&task, o)
	}
	if wanted == got {
		return ""
	}
	return cmp.Diff(wanted, got)
}

// question is what the probe asks the cell.
func (p *probe) question(c cell) (task Task, o Occurrence, now Time) {
	task, o, now = sample(c.from), Occurrence{Event: c.event, Actor: c.actor, Claim: "c", Round: 2}, p.now
	if p.task != nil {
		p.task(&task)
	}
	if p.asked != nil {
		p.asked(&o)
	}
	if now == 0 {
		now = sampleNow
	}
	return task, o, now
}

func (w want) move(t *Task, o Occurrence) Move {
	m := Move{
		ID: 7, Event: o.Event, Actor: o.Actor, From: t.State, Round: 2, Rev: 40,
		To: w.to, Via: w.via, Count: w.count, NextRound: w.next, Fenced: w.fenced,
		AskStop: w.stop, StopAsked: t.StopAsked, NotBefore: w.rest, Until: w.until, Deadline: Never,
	}
	if w.fenced || o.Event == Claim {
		m.Claim = o.Claim
	}
	if w.to == Open || w.to == Blocked {
		m.Deadline = t.EndBefore
	}
	if o.Event == Report {
		m.Failed, m.Class, m.ExitCode, m.HasExit, m.Retry = o.Failed, o.Class, o.ExitCode, o.HasExit, o.Retry
	}
	return m
}

func TestMatrix(t *testing.T) {
	t.Parallel()
	for _, fault := range checkMatrix(table, 100) {
		t.Error(fault)
	}
}

// TestLongMatrixBites shows that no row, and no word of a row, can change unseen.
func TestLongMatrixBites(t *testing.T) {
	t.Parallel()
	for i := range table {
		for what, rows := range mutilations(i) {
			if len(checkMatrix(rows, 1)) == 0 {
				t.Errorf("row %d (%s, %s -> %s): nobody notices: %s", i, table[i].From, table[i].Event, table[i].To, what)
			}
		}
	}
}

// mutilations returns tables in which row i is missing or wrong.
func mutilations(i int) map[string][]Transition {
	all := map[string][]Transition{"row deleted": slices.Delete(Table(), i, i+1)}
	change := func(what string, f func(*Transition)) {
		rows := Table()
		f(&rows[i])
		all[what] = rows
	}
	change("fence flipped", func(r *Transition) { r.Fenced = !r.Fenced })
	change("round flipped", func(r *Transition) { r.NextRound = !r.NextRound })
	change("stop flipped", func(r *Transition) { r.AskStop = !r.AskStop })
	change("another target", func(r *Transition) { r.To = otherThan(r.To, States()) })
	change("another counter", func(r *Transition) { r.Count = otherThan(r.Count, Counters()) })
	change("another stamp", func(r *Transition) { r.Via = otherThan(r.Via, []string{StampTimeout, StampFailure}) })
	change("an actor more", func(r *Transition) { r.Actors = Actors() })
	change("an actor less", func(r *Transition) { r.Actors = r.Actors[1:] })
	change("never taken", func(r *Transition) { r.When = "no such condition" })
	if table[i].When != always {
		change("condition dropped", func(r *Transition) { r.When = always })
	}
	if i+1 < len(table) && ordered(&table[i], &table[i+1]) {
		rows := Table()
		rows[i], rows[i+1] = rows[i+1], rows[i]
		all["order swapped"] = rows
	}
	return all
}

// TestCould: a row says of each round and stop what becomes of its condition in
// all the probes together, and no less.
func TestCould(t *testing.T) {
	t.Parallel()
	for i := range table {
		for _, known := range []struct{ foreign, stop bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
			held, missed := outcomes(&table[i], known.foreign, known.stop)
			possible, certain := table[i].Could(known.foreign, known.stop)
			if possible != held || certain == missed {
				t.Errorf("row %d (%s), %+v: possible %v, certain %v, but it held %v and did not hold %v",
					i, table[i].When, known, possible, certain, held, missed)
			}
		}
	}
}

// outcomes says whether the condition of row holds in some probe, and whether it
// fails to in some, if all probes are of a foreign round or none is, and of a task
// that was asked to stop or not.
func outcomes(row *Transition, foreign, stop bool) (held, missed bool) {
	for c, probes := range expected() {
		for _, p := range probes {
			task, o, now := p.question(c)
			task.StopAsked, task.Current.Claim = stop, "c"
			if foreign {
				task.Current.Claim = ""
			}
			if row.When.holds(&task, o, now) {
				held = true
			} else {
				missed = true
			}
		}
	}
	return held, missed
}

// ordered says that the order of two rows makes a difference: they answer the
// same question and may both hold. Nothing is allowed once more after a stop was
// asked for, so those two never do.
func ordered(a, b *Transition) bool {
	same := a.From == b.From && a.Event == b.Event && a.Actors[0] == b.Actors[0]
	return same && (a.When != stopWasAsked || b.When != oneMoreLoss)
}

func otherThan[T comparable](x T, all []T) T {
	if all[0] != x {
		return all[0]
	}
	return all[1]
}
