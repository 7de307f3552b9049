package statemachine_test

import (
	"errors"
	"fmt"
	"slices"

	sm "github.com/tdf-go/tdf/statemachine"
)

// step is one thing that may happen next.
type step struct {
	who, what string
	move      *sm.Move
	world     world
	// fault is what the step broke.
	fault error
}

func (s step) String() string {
	if s.move == nil {
		return s.who + " " + s.what
	}
	m := s.move
	return fmt.Sprintf("%s %s: %s task %d: %s -> %s (round %d, claim %q, rev %d)", s.who, s.what, m.Event, m.ID, m.From, m.To, m.Round, m.Claim, m.Rev)
}

// next appends everything that may happen in w.
func (s *setup) next(w *world, steps []step) []step {
	if w.now < s.horizon {
		steps = append(steps, step{who: "time", what: "passes", world: s.tick(w)})
	}
	for i := range s.workers {
		steps = s.worker(w, i, steps)
	}
	for i := range s.servers {
		steps = s.clerk(w, "a server", sm.Server, func(w *world) **sm.Move { return &w.servers[i] }, steps)
	}
	for i := range max(s.managers, 1) {
		steps = s.clerk(w, "a manager", sm.Manager, func(w *world) **sm.Move { return &w.managers[i].waits }, steps)
		steps = s.handle(w, i, steps)
	}
	steps = s.edit(w, steps)
	steps = s.loseHistory(w, steps)
	return s.lateMessages(w, steps)
}

// clerk is a server or a manager: it reads a task and decides, later sends the
// decision, and forgets it once it has an answer, gives up or dies.
func (s *setup) clerk(w *world, who string, actor sm.Actor, waits func(*world) **sm.Move, steps []step) []step {
	m := *waits(w)
	if m == nil {
		return s.decisions(w, who, actor, func(n *world, m *sm.Move) { *waits(n) = m }, steps)
	}
	forget := func(n *world) { *waits(n) = nil }
	steps = s.deliver(w, who, m, func(n *world, _ sm.Result) error { forget(n); return nil }, steps)
	return s.giveUp(w, who, m, forget, steps)
}

// decisions are all that actor may decide from what it reads now.
func (s *setup) decisions(w *world, who string, actor sm.Actor, keep func(*world, *sm.Move), steps []step) []step {
	for i := range s.tasks {
		for _, o := range s.occurrences(actor) {
			o.FromLostEpoch, o.Unbegun = s.void(w, w.tasks[i]), s.unbegun(w, w.tasks[i])
			m, err := sm.Decide(w.tasks[i], o, w.now)
			if err != nil || o.Event == sm.Hold && w.holds == s.holds || s.mustWait(w, &m) {
				continue
			}
			n := *w
			n.decidedIn(s, &m)
			s.fence(&n, &m)
			keep(&n, &m)
			if o.Event == sm.Hold {
				n.holds++
			}
			steps = append(steps, step{who: who, what: "decides", move: &m, world: n})
		}
	}
	return steps
}

// occurrences are what actor may want of a task.
func (s *setup) occurrences(actor sm.Actor) []sm.Occurrence {
	all := make([]sm.Occurrence, 0, len(s.by[actor])+1)
	for _, e := range s.by[actor] {
		o := sm.Occurrence{Event: e, Actor: actor, Grace: s.grace}
		all = append(all, o)
		switch {
		case e == sm.Create && s.held:
			o.Held = true
			all = append(all, o)
		case e == sm.Settle && s.excuses:
			o.Excused = true
			all = append(all, o)
		}
	}
	return all
}

// worker claims from a read, later speaks from what it was told at its claim.
func (s *setup) worker(w *world, i int, steps []step) []step {
	who := "a worker"
	me := w.workers[i]
	dies := func(n *world) { n.workers[i] = n.workers[i].dead() }
	steps = s.heartbeat(w, i, steps)
	steps = s.learnEpoch(w, i, steps)
	steps = s.aheadSteps(w, i, steps)
	switch {
	case me.waits != nil:
		steps = s.deliver(w, who, me.waits, func(n *world, r sm.Result) error { return s.answered(n, i, r) }, steps)
		return s.giveUp(w, who, me.waits, dies, steps)
	case s.lease > 0 && !me.lease.up:
		return s.register(w, i, steps)
	case me.holds != nil:
		n := *w
		dies(&n)
		steps = append(steps, step{who: who, what: "dies", world: n})
		steps = s.learnStop(w, i, steps)
		return s.closings(w, i, steps)
	case me.lease.busy:
		n := *w
		dies(&n)
		return append(steps, step{who: who, what: "dies", world: n})
	default:
		steps = s.decisions(w, who, sm.Worker, func(n *world, m *sm.Move) { n.workers[i].waits = m }, steps)
		return s.newClaims(w, i, steps)
	}
}

// newClaims are the claims worker i may decide on now.
func (s *setup) newClaims(w *world, i int, steps []step) []step {
	if int(w.made) == s.claims || s.lease > 0 && w.workers[i].lease.believes < w.now {
		return steps
	}
	id := string(rune('a' + w.made))
	if s.foreign {
		id = ""
	}
	for k := range s.tasks {
		m, err := sm.Decide(w.tasks[k], sm.Occurrence{Event: sm.Claim, Actor: sm.Worker, Claim: id}, w.now)
		if err != nil {
			continue
		}
		n := *w
		n.workers[i].lease.claims |= 1 << n.made
		n.history.made[n.made] = w.workers[i].epoch
		if n.workers[i].taken() {
			n.ahead.claimed |= 1 << n.made
		}
		n.made++
		n.workers[i].waits = &m
		steps = append(steps, step{who: "a worker", what: "decides", move: &m, world: n})
	}
	return steps
}

// ways are those in which worker i may end the round it holds.
func (s *setup) closings(w *world, i int, steps []step) []step {
	t := w.workers[i].holds
	for _, e := range []sm.Event{sm.Report, sm.StopOverdue, sm.HandBack, sm.Terminate} {
		if s.ways != nil && !slices.Contains(s.ways, e) {
			continue
		}
		for _, o := range s.said(e, w.now) {
			o.Actor, o.Claim, o.Round = sm.Worker, t.Current.Claim, t.Round
			m, err := sm.Decide(t, o, w.now)
			if err != nil { // a foreign worker, which speaks another language
				continue
			}
			n := *w
			n.workers[i].waits = &m
			if ok, fault := s.ended(&n, i); ok {
				steps = append(steps, step{who: "a worker", what: "decides", move: &m, world: n, fault: fault})
			}
		}
	}
	return steps
}

// said is what a worker may say of a round that it ends in the way e.
func (s *setup) said(e sm.Event, now sm.Time) []sm.Occurrence {
	all := []sm.Occurrence{{Event: e}}
	if e == sm.Report && s.settles {
		all = append(all, sm.Occurrence{Event: e, Settles: true})
	}
	if e == sm.Report {
		all = append(all, sm.Occurrence{Event: e, Failed: true})
	}
	last := all[len(all)-1]
	for _, d := range s.words {
		switch last.Retry = now.Add(d); {
		case d == sm.Forever && e == sm.Report:
			last.Retry = sm.Never
		case d == sm.Forever || e != sm.Report && e != sm.HandBack:
			continue
		}
		all = append(all, last)
	}
	return all
}

// answered is worker i learning what became of its message.
func (s *setup) answered(n *world, i int, r sm.Result) error {
	me := &n.workers[i]
	m := me.waits
	now, mine := n.tasks[slot(m.ID)], me.round(m.Claim)
	me.waits = nil
	switch {
	case m.Event == sm.Claim && r != sm.Refused:
		return n.told(s, i, now)
	case m.Event == sm.Claim && s.ahead && me.lease.fenced: // it is told why
		*me = me.dead()
	case m.Event == sm.Claim:
	case r == sm.Refused && *mine != nil && stopHeld(now, *mine): // it reads the mark and decides anew
		*mine = now
	default:
		*mine = nil
		me.moveUp()
	}
	return nil
}

// deliver is m arriving: with an answer that arrives too, and, where it changed
// something, with an answer that is lost, so that the sender repeats m.
func (s *setup) deliver(w *world, who string, m *sm.Move, answer func(*world, sm.Result) error, steps []step) []step {
	n, r, fault := s.applied(w, m)
	lost := n
	begun := answer(&n, r)
	steps = append(steps, step{who: who, what: "sends", move: m, world: n, fault: errors.Join(fault, begun)})
	if r == sm.Moved {
		steps = append(steps, step{who: who, what: "sends, gets no answer", move: m, world: lost, fault: fault})
	}
	return steps
}

// giveUp is the sender of m timing out or dying: m is lost, or under way still.
func (s *setup) giveUp(w *world, who string, m *sm.Move, forget func(*world), steps []step) []step {
	n := *w
	forget(&n)
	steps = append(steps, step{who: who, what: "dies or gives up, message lost", move: m, world: n})
	for i := range s.late {
		if n.late[i] == nil {
			n.late[i] = m
			return append(steps, step{who: who, what: "dies or gives up, message under way", move: m, world: n})
		}
	}
	return steps
}

// lateMessages may arrive, again and again, and may be lost.
func (s *setup) lateMessages(w *world, steps []step) []step {
	for i := range s.late {
		m := w.late[i]
		if m == nil {
			continue
		}
		n, r, fault := s.applied(w, m)
		if r == sm.Moved || fault != nil {
			steps = append(steps, step{who: "the network", what: "delivers late", move: m, world: n, fault: fault})
		}
		n = *w
		n.late[i] = nil
		steps = append(steps, step{who: "the network", what: "loses", move: m, world: n})
	}
	return steps
}

// edit is the manager moving the end of a task that waits, or runs.
func (s *setup) edit(w *world, steps []step) []step {
	n := *w
	t := *w.tasks[0]
	what := "prolongs task 1"
	switch {
	case w.edits == s.edits || t.EndBefore == sm.Never:
		return steps
	case t.State == sm.Open:
		t.EndBefore++
	case t.State == sm.Running && s.settles:
		t.EndBefore--
		what = "shortens task 1"
	default:
		return steps
	}
	t.Rev++
	n.tasks[0], n.edits = &t, n.edits+1
	return append(steps, step{who: "the manager", what: what, world: n})
}
