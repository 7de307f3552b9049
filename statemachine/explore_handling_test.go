package statemachine_test

import (
	"fmt"

	sm "github.com/tdf-go/tdf/statemachine"
)

// boss is what one manager knows. In worlds with leases of managers it archives
// only what it was granted and has handled.
type boss struct {
	// waits is the decision that it has made and not yet seen answered.
	waits *sm.Move
	// up says that it has a lease; believes is when it thinks that the lease is
	// over, which is never later than it is.
	up       bool
	believes sm.Time
	// holds is the task as it was granted; runs says that its handler is at work,
	// done that the handler has come to its end.
	holds      *sm.Task
	runs, done bool
}

// desk is what Redis knows of handling: till when each manager's lease goes, and
// who was granted each task (0: nobody, else the manager's number from 1 on).
type desk struct {
	till  [maxManagers]sm.Time
	owner [maxTasks]int8
	// granted counts the grants.
	granted int8
	// handled says of each task that some handler came to its end with it: for the
	// assertions only.
	handled [maxTasks]bool
}

const noLease = sm.Time(-1)

// encode writes what manager i knows, and what Redis knows of it.
func (b boss) encode(text []byte, i int, d *desk) []byte {
	text = appendTaskOrNil(appendMove(text, b.waits), b.holds)
	text = append(text, byte(d.granted), bit(b.up), byte(b.believes), bit(b.runs), bit(b.done), byte(d.till[i]))
	for k, owner := range d.owner {
		text = append(text, bit(owner == int8(i+1)), bit(d.handled[k]))
	}
	return text
}

// handle is what manager i may do about handling.
func (s *setup) handle(w *world, i int, steps []step) []step {
	me := w.managers[i]
	switch {
	case s.handling == 0 || me.waits != nil:
		return steps
	case !me.up:
		return s.begin(w, i, steps)
	}
	n := *w
	n.managers[i] = boss{}
	steps = append(steps, step{who: "a manager", what: "dies", world: n})
	steps = s.renew(w, i, steps)
	if me.holds == nil {
		return s.granting(w, i, steps)
	}
	if me.runs {
		n := *w
		n.managers[i].runs, n.managers[i].done, n.desk.handled[slot(me.holds.ID)] = false, true, true
		steps = append(steps, step{who: "a manager", what: "has handled a task", world: n})
	}
	if me.done || s.flaw == archiveFirst {
		m, err := sm.Decide(me.holds, sm.Occurrence{Event: sm.Archive, Actor: sm.Manager}, w.now)
		m.Claim = bossName(i)
		n := *w
		n.managers[i].waits, n.managers[i].holds, n.managers[i].runs, n.managers[i].done = &m, nil, false, false
		steps = append(steps, step{who: "a manager", what: "decides", move: &m, world: n, fault: err})
	}
	return steps
}

// bossName stands in the place of the claim of what manager i decides about a task
// it has handled: the name of its lease. That place is free there. formerBoss stands for one that has ended.
func bossName(i int) string { return string(rune('A' + i)) }

const formerBoss = "-"

// notTheirs says that who decided to archive a task is not whose task it is: a lease that another manager has ended holds nothing.
func (s *setup) notTheirs(w *world, m *sm.Move) bool {
	k := slot(m.ID)
	if s.handling == 0 || m.Event != sm.Archive || s.flaw == anyHolder || w.tasks[k].State == sm.Archived {
		return false
	}
	for i := range w.managers {
		if m.Claim == bossName(i) {
			return w.desk.owner[k] != int8(i+1) || w.desk.till[i] == noLease
		}
	}
	return true
}

// handlerEnds is until when a lease goes that is prolonged now. In the end all
// leases are over, but time stands still then, so they can be begun again.
func (s *setup) handlerEnds(w *world) sm.Time { return min(w.now.Add(s.handling), s.horizon) }

// begin is a program of that name coming up. What the former one held is free.
func (s *setup) begin(w *world, i int, steps []step) []step {
	n := *w
	n.desk.till[i] = s.handlerEnds(w)
	for k, owner := range n.desk.owner {
		if owner == int8(i+1) {
			n.desk.owner[k] = 0
		}
	}
	n.managers[i] = boss{up: true, believes: n.desk.till[i]}
	for k, m := range n.late { // what the former one has sent names a lease that is over
		if m != nil && m.Claim == bossName(i) {
			late := *m
			late.Claim = formerBoss
			n.late[k] = &late
		}
	}
	return append(steps, step{who: "a manager", what: "begins to handle", world: n})
}

// renew is manager i prolonging its lease, or learning that it has lost it. It
// may do so when the lease is over already, as long as nobody has taken over.
func (s *setup) renew(w *world, i int, steps []step) []step {
	n := *w
	switch ends := s.handlerEnds(w); {
	case w.desk.till[i] == noLease:
		n.managers[i] = boss{}
		return append(steps, step{who: "a manager", what: "learns that its lease is lost", world: n})
	case ends > w.desk.till[i]:
		n.desk.till[i] = ends
		steps = append(steps, step{who: "a manager", what: "renews its lease, gets no answer", world: n})
		fallthrough
	case ends > w.managers[i].believes:
		n.desk.till[i], n.managers[i].believes = ends, ends
		return append(steps, step{who: "a manager", what: "renews its lease", world: n})
	}
	return steps
}

// lives says that the lease of manager i is not over.
func (d *desk) lives(i int, now sm.Time) bool { return d.till[i] >= now }

// granting is all the tasks that manager i may be granted. The grant makes it their holder, so that nothing a former
// one decides is carried out, and changes nothing of them.
func (s *setup) granting(w *world, i int, steps []step) []step {
	for k := range s.tasks {
		owner := w.desk.owner[k]
		mine, taken := owner == int8(i+1), owner != 0 && w.desk.lives(int(owner-1), w.now)
		if !w.tasks[k].State.IsOutcome() || !w.desk.lives(i, w.now) || !mine && taken && s.flaw != crowding {
			continue
		}
		n := *w
		if !mine && w.desk.granted == s.grants {
			continue
		}
		if !mine {
			n.desk.granted++
			if owner != 0 && s.flaw != crowding {
				n.desk.till[owner-1] = noLease
			}
			n.desk.owner[k] = int8(i + 1)
			steps = append(steps, step{who: "a manager", what: "is granted a task, gets no answer", world: n})
		}
		if n.managers[i].believes >= n.now {
			n.managers[i].holds, n.managers[i].runs = n.tasks[k], true
		}
		steps = append(steps, step{who: "a manager", what: "is granted a task", world: n})
	}
	return steps
}

// tickHandlers stops the handlers that a lease no longer covers.
func (s *setup) tickHandlers(n *world) {
	for i := range n.managers {
		if me := &n.managers[i]; me.runs && me.believes < n.now && s.flaw != handlesOn {
			me.runs, me.holds = false, nil
		}
	}
}

// checkHandlers: no two handlers are at work on one task.
func (n *world) checkHandlers() error {
	a, b := n.managers[0], n.managers[1]
	if a.runs && b.runs && a.holds.ID == b.holds.ID {
		return fmt.Errorf("task %d is handled twice at the same time", a.holds.ID)
	}
	return nil
}

// checkHandled: what is archived was handled, and nobody is at it.
func (s *setup) checkHandled(n *world, m *sm.Move) error {
	if s.handling == 0 || m.Event != sm.Archive {
		return nil
	}
	if !n.desk.handled[slot(m.ID)] {
		return fmt.Errorf("task %d is archived and was never handled", m.ID)
	}
	for i, b := range n.managers {
		if b.runs && b.holds.ID == m.ID && m.Claim != bossName(i) {
			return fmt.Errorf("task %d is archived while another manager handles it", m.ID)
		}
	}
	return nil
}

// handlingWorlds are worlds with two managers that handle under leases.
func handlingWorlds() []setup {
	archivist := map[sm.Actor][]sm.Event{sm.Manager: {sm.Create}, sm.Server: {sm.Settle, sm.Lose}}
	caller := map[sm.Actor][]sm.Event{sm.Manager: {sm.Create, sm.Cancel}}
	strict, never := sm.Task{EndBefore: 0}, sm.Task{EndBefore: sm.Never, Timeout: sm.Forever}
	return []setup{
		{name: "two managers", tasks: 1, managers: 2, late: 1, task: strict, horizon: 3, by: caller, handling: 1, grants: 4},
		{name: "two managers and two tasks", tasks: 2, managers: 2, task: strict, horizon: 2, by: caller, handling: 1, grants: 3},
		{name: "two managers and a worker", tasks: 1, workers: 1, servers: 1, managers: 2, claims: 1, task: never, horizon: 2, by: archivist, handling: 1, grants: 2, ways: []sm.Event{sm.Report}},
	}
}

func handlingDefects() []defect {
	const twice = "handled twice at the same time"
	return []defect{
		{name: "no lease of managers", world: "two managers", says: twice, flaw: crowding},
		{name: "a handler that runs on", world: "two managers", says: twice, flaw: handlesOn},
		{name: "a holder that is not compared", world: "two managers", says: "while another manager handles it", flaw: anyHolder},
		{name: "archived first", world: "two managers", says: "was never handled", flaw: archiveFirst},
	}
}
