package statemachine_test

import (
	"fmt"

	sm "github.com/tdf-go/tdf/statemachine"
)

// ahead is what has to be known where workers claim ahead: a worker has one slot,
// and while that is taken it may hold one round more, which it has not begun. It
// begins that round when the slot is free, before it reports what was in the slot,
// or hands it back. So the rounds that it holds begin in the order of their claims.
type ahead struct {
	// outsiders counts the rounds of other tasks that workers have had.
	outsiders int8
	// For the assertions, with one bit for each claim: claimed says that it was made
	// while the slot was taken, begun that the program has begun, and back that the
	// worker has decided to hand the round back.
	claimed, begun, back uint8
}

// encode writes what can make a difference later.
func (a ahead) encode(s *setup, b []byte) []byte {
	if !s.ahead {
		return b
	}
	return append(b, byte(a.outsiders), a.claimed, a.begun, a.back)
}

// taken says that the slot of a worker is.
func (me *worker) taken() bool { return me.holds != nil || me.lease.busy }

// round is where the worker keeps the round held under that claim.
func (me *worker) round(claim string) **sm.Task {
	if me.next != nil && me.next.Current.Claim == claim {
		return &me.next
	}
	return &me.holds
}

// moveUp puts what was claimed ahead into a slot that has become free.
func (me *worker) moveUp() {
	if !me.taken() {
		me.holds, me.next = me.next, nil
	}
}

// program is the task whose program runs, or nil.
func (n *world) program(me *worker) *sm.Task {
	switch {
	case !me.lease.runs:
		return nil
	case me.next != nil && n.ahead.begun&claimBit(me.next.Current.Claim) != 0:
		return me.next
	default:
		return me.holds
	}
}

// told is worker i hearing that a round is its own: it begins it, unless its slot
// is taken, or its lease over.
func (n *world) told(s *setup, i int, t *sm.Task) error {
	me := &n.workers[i]
	if me.taken() {
		me.next = t
		return nil
	}
	me.holds = t
	me.lease.runs = s.lease > 0 && n.now <= me.lease.believes
	if me.lease.runs {
		return n.begins(me, t)
	}
	return nil
}

// begins notes that the program of t does: once, and not after the lease, when a
// server may have given the task to another worker.
func (n *world) begins(me *worker, t *sm.Task) error {
	claim := claimBit(t.Current.Claim)
	switch {
	case n.ahead.begun&claim != 0:
		return fmt.Errorf("task %d: the program began twice under claim %q", t.ID, t.Current.Claim)
	case n.now > me.lease.ends:
		return fmt.Errorf("task %d: the program under claim %q began after its lease", t.ID, t.Current.Claim)
	}
	n.ahead.begun |= claim
	return nil
}

// mayBegin says that worker i may begin what it has claimed ahead, once its slot is
// free.
func (s *setup) mayBegin(w *world, i int) bool {
	me := &w.workers[i]
	return me.next != nil && w.ahead.begun&claimBit(me.next.Current.Claim) == 0 && (w.now <= me.lease.believes || s.flaw == beginsLate)
}

// ended is worker i with a slot that has become free, although nobody has been told:
// the round that was claimed ahead begins.
func (s *setup) ended(n *world, i int) (bool, error) {
	me := &n.workers[i]
	me.lease.runs = false
	switch {
	case me.next == nil || s.flaw == reportsFirst:
		return true, nil
	case !s.mayBegin(n, i):
		return false, nil
	}
	me.lease.runs = true
	return true, n.begins(me, me.next)
}

// aheadSteps is what worker i may do beside what it does with the task in its slot:
// it claims ahead, hands that back, and works on a round that is not of this world.
func (s *setup) aheadSteps(w *world, i int, steps []step) []step {
	me := &w.workers[i]
	switch {
	case !s.ahead || !me.lease.up:
		return steps
	case me.waits != nil:
		return s.beginAgain(w, i, steps)
	case me.next == nil && me.taken():
		steps = s.newClaims(w, i, steps)
	case me.next != nil && w.ahead.begun&claimBit(me.next.Current.Claim) == 0:
		steps = s.handBack(w, i, steps)
	}
	return s.outside(w, i, steps)
}

// handBack is worker i deciding not to begin what it has claimed ahead.
func (s *setup) handBack(w *world, i int, steps []step) []step {
	t := w.workers[i].next
	m, err := sm.Decide(t, sm.Occurrence{Event: sm.HandBack, Actor: sm.Worker, Claim: t.Current.Claim, Round: t.Round}, w.now)
	n := *w
	n.workers[i].waits = &m
	n.ahead.back |= claimBit(t.Current.Claim)
	return append(steps, step{who: "a worker", what: "does not begin, and decides", move: &m, world: n, fault: err})
}

// beginAgain is what a worker with [beginsBack] does: the slot is free before the
// hand-back has been answered, and takes the round.
func (s *setup) beginAgain(w *world, i int, steps []step) []step {
	me := &w.workers[i]
	if s.flaw != beginsBack || me.waits.Event != sm.HandBack || !s.mayBegin(w, i) {
		return steps
	}
	n := *w
	n.workers[i].lease.runs = true
	return append(steps, step{who: "a worker", what: "begins what it has handed back", world: n, fault: n.begins(me, me.next)})
}

// outside is a round of another task than those of this world: it takes the slot of
// worker i, ends, and is reported.
func (s *setup) outside(w *world, i int, steps []step) []step {
	me := &w.workers[i]
	n := *w
	switch {
	case me.holds != nil || !me.lease.busy && w.ahead.outsiders == s.outsiders:
		return steps
	case !me.lease.busy:
		n.workers[i].lease.busy = true
		n.ahead.outsiders++
		return append(steps, step{who: "a worker", what: "claims and begins another task", world: n})
	case me.next != nil && w.ahead.begun&claimBit(me.next.Current.Claim) == 0 && s.flaw != reportsFirst:
		ok, fault := s.ended(&n, i)
		if !ok {
			return steps
		}
		return append(steps, step{who: "a worker", what: "ends another task, and begins what it claimed ahead", world: n, fault: fault})
	}
	n.workers[i].lease.busy = false
	n.workers[i].moveUp()
	return append(steps, step{who: "a worker", what: "has reported another task", world: n})
}

// unbegun says that t is held by a worker that holds another round, which it has
// claimed before: as a server reads it, the slot is that round's.
func (s *setup) unbegun(w *world, t *sm.Task) bool {
	i := w.holder(t)
	if !s.ahead || i < 0 || s.flaw == chargesAhead {
		return false
	}
	return w.workers[i].lease.busy || w.heldWith(t, func(other string) bool { return other < t.Current.Claim })
}

// notLast says that the worker of t holds a round that it has claimed later. Who takes
// the rounds of a lost worker takes them from the last on: if it dies between two, the
// next one reads the same order.
func (s *setup) notLast(w *world, t *sm.Task) bool {
	return s.ahead && w.heldWith(t, func(other string) bool {
		return (other > t.Current.Claim) != (s.flaw == firstFirst)
	})
}

// takes says that m takes a round from its worker. Where workers claim ahead, one that
// is overdue is its worker's as well, as long as that one lives.
func (s *setup) takes(m *sm.Move) bool {
	return m.Event == sm.Lose || s.ahead && m.Event == sm.Deadline && m.From == sm.Running
}

// heldWith says that the worker of t holds another round under a claim that is like.
func (n *world) heldWith(t *sm.Task, like func(string) bool) bool {
	i := n.holder(t)
	for _, other := range n.tasks {
		if other != nil && other.ID != t.ID && i >= 0 && n.holder(other) == i && like(other.Current.Claim) {
			return true
		}
	}
	return false
}

// checkAhead: nobody pays for a round that was claimed ahead and never begun. So a
// task whose program has never begun has no loss, except of a claim for a free slot
// whose answer never came.
func checkAhead(w *world, m *sm.Move) error {
	claim := claimBit(w.tasks[slot(m.ID)].Current.Claim)
	if m.Event == sm.Lose && m.Count != sm.Releases && w.ahead.claimed&claim != 0 && w.ahead.begun&claim == 0 {
		return fmt.Errorf("task %d pays for a round that was never begun: %q", m.ID, m.Count)
	}
	return nil
}

// checkHandedBack: no program runs whose round was handed back.
func (n *world) checkHandedBack(t *sm.Task) error {
	if t != nil && n.ahead.back&claimBit(t.Current.Claim) != 0 {
		return fmt.Errorf("task %d: the program runs although claim %q was handed back", t.ID, t.Current.Claim)
	}
	return nil
}

// aheadWorlds are worlds in which workers claim ahead.
func aheadWorlds() []setup {
	slot := setup{
		name: "claimed ahead", tasks: 1, workers: 2, servers: 1, claims: 2, horizon: 2, lease: 1, ahead: true, outsiders: 1,
		task: sm.Task{State: sm.Open, EndBefore: 1, Timeout: sm.Forever, MaxLosses: 1, AtOnce: true},
		by:   map[sm.Actor][]sm.Event{sm.Server: {sm.Deadline, sm.Settle, sm.Lose}}, ways: []sm.Event{sm.Report},
	}
	late, two := slot, slot
	late.name, late.workers, late.late = "claimed ahead and a late message", 1, 1
	two.name, two.tasks, two.workers, two.outsiders, two.task.MaxLosses = "two rounds and one slot", 2, 1, 0, 0
	return []setup{slot, late, two}
}

func aheadDefects() []defect {
	const never = "pays for a round that was never begun"
	return []defect{
		{name: "rounds charged that were not begun", world: "claimed ahead", says: never, flaw: chargesAhead},
		{name: "two rounds charged of one slot", world: "two rounds and one slot", says: never, flaw: chargesAhead},
		{name: "the first round taken first", world: "two rounds and one slot", says: never, flaw: firstFirst},
		{name: "reported before the next one begins", world: "two rounds and one slot", says: never, flaw: reportsFirst},
		{name: "begun although handed back", world: "claimed ahead", says: "was handed back", flaw: beginsBack},
		{name: "begun after the lease", world: "claimed ahead", says: "began after its lease", flaw: beginsLate},
		{name: "a late hand-back", world: "claimed ahead and a late message", says: "wrote into round", apply: twisted(handedBackLate)},
	}
}

func handedBackLate(t *sm.Task, m *sm.Move) {
	if m.Event == sm.HandBack {
		m.Claim, m.Round = t.Current.Claim, t.Round
	}
}
