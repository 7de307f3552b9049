package statemachine_test

import (
	"fmt"

	sm "github.com/tdf-go/tdf/statemachine"
)

// lease is what a worker and the registry know of each other, in worlds with
// leases. A worker is a name; its programs die with it, and at the latest when
// its lease is over by its own clock (the dead-man switch), also while it is
// frozen, which is a worker whose next step is not taken.
type lease struct {
	// up says that the worker lives and believes itself registered.
	up bool
	// fenced says that a server has found the lease over.
	fenced bool
	// ends is when the lease is over as Redis has it; believes is when the
	// worker thinks so, which is never later.
	ends, believes sm.Time
	// claims has one bit for each claim of the present incarnation.
	claims uint8
	// runs says that the program of the task it holds is alive.
	runs bool
	// busy says that it holds a round of a task beyond this world, which it has claimed
	// before all others and not reported yet.
	busy bool
}

// flaw is one thing wrong with leases, or with what happens when Redis loses changes.
type flaw int

const (
	impatient flaw = iota + 1 // servers take tasks before the lease is over
	runsOn                    // workers do not kill what runs when their lease is over
	anyClaim                  // claims of former incarnations are carried out

	crowding     // a manager takes what another one handles
	handlesOn    // a handler is not stopped when its manager's lease is over
	anyHolder    // who archives a task need not be the one who has it
	archiveFirst // managers archive before they have handled

	anyEpoch     // reports of former epochs are accepted
	oldDecisions // judgements of former epochs are carried out
	sameIDs      // ids that were lost are given out again
	charged      // rounds of former epochs are lost like any other
	notReleased  // rounds of former epochs are left alone

	chargesAhead // rounds that were not begun are lost like any other
	firstFirst   // the rounds of a lost worker are taken from the first on
	reportsFirst // workers report a round before they begin the next one
	beginsBack   // workers begin what they have decided to hand back
	beginsLate   // workers begin a round after their lease
)

func (l lease) encode(b []byte) []byte {
	return append(b, bit(l.up), bit(l.fenced), byte(l.ends), byte(l.believes), l.claims, bit(l.runs)|bit(l.busy)<<1)
}

// dead is what is left of a worker that has died: what the registry knows.
func (me *worker) dead() worker {
	l := me.lease
	l.up, l.runs, l.believes = false, false, 0
	return worker{lease: l, epoch: me.epoch}
}

// tick is the next moment: workers kill what their lease no longer covers.
func (s *setup) tick(w *world) world {
	n := *w
	n.now++
	for i := range s.workers {
		if l := &n.workers[i].lease; l.believes < n.now && s.flaw != runsOn {
			l.runs = false
		}
	}
	s.tickHandlers(&n)
	return n
}

// renewed is the end of a lease that is prolonged now. In the end all leases
// are over, so that every history comes to an end.
func (s *setup) renewed(w *world) sm.Time { return min(w.now.Add(s.lease), s.horizon-1) }

// heartbeat is worker i renewing its lease, its answer getting lost, or its
// learning that it was taken for dead.
func (s *setup) heartbeat(w *world, i int, steps []step) []step {
	l := w.workers[i].lease
	switch ends := s.renewed(w); {
	case s.lease == 0 || !l.up:
	case l.fenced:
		n := *w
		n.workers[i] = n.workers[i].dead()
		steps = append(steps, step{who: "a worker", what: "learns that it is lost", world: n})
	case ends > l.ends || ends > l.believes && ends == l.ends:
		n := *w
		n.workers[i].lease.ends = ends
		if ends > l.ends {
			steps = append(steps, step{who: "a worker", what: "renews its lease, gets no answer", world: n})
		}
		n.workers[i].lease.believes = ends
		steps = append(steps, step{who: "a worker", what: "renews its lease", world: n})
	}
	return steps
}

// register is a name coming back: it loses what it held before, one task after
// the other, and is registered once it holds nothing.
func (s *setup) register(w *world, i int, steps []step) []step {
	for k := range s.tasks {
		if w.holder(w.tasks[k]) != i || s.notLast(w, w.tasks[k]) {
			continue
		}
		n := *w
		o := sm.Occurrence{Event: sm.Lose, Actor: sm.Worker, Unbegun: s.unbegun(w, w.tasks[k])}
		m, err := sm.Decide(w.tasks[k], o, w.now)
		n.workers[i].waits = &m
		return append(steps, step{who: "a successor", what: "decides", move: &m, world: n, fault: err})
	}
	if ends := s.renewed(w); ends >= w.now {
		n := *w
		n.workers[i] = worker{lease: lease{up: true, ends: ends, believes: ends}}
		steps = append(steps, step{who: "a worker", what: "registers", world: n})
	}
	return steps
}

// holder is the worker whose present incarnation holds a running task, or -1.
func (w *world) holder(t *sm.Task) int {
	if t.State != sm.Running {
		return -1
	}
	for i := range w.workers {
		if w.workers[i].lease.claims&claimBit(t.Current.Claim) != 0 {
			return i
		}
	}
	return -1
}

// checkHeld: what runs is held by a worker whose silence would be noticed.
func (s *setup) checkHeld(n *world, t *sm.Task) error {
	if s.lease > 0 && t.State == sm.Running && n.holder(t) < 0 {
		return fmt.Errorf("task %d is running and nobody holds it", t.ID)
	}
	return nil
}

func claimBit(claim string) uint8 {
	if claim == "" {
		return 0
	}
	return 1 << (claim[0] - 'a')
}

// mustWait says that no server may take the task from its worker yet.
func (s *setup) mustWait(w *world, m *sm.Move) bool {
	if t := w.tasks[slot(m.ID)]; s.takes(m) && (s.leaves(w, t) || s.notLast(w, t)) {
		return true
	}
	if s.lease == 0 || !s.takes(m) || m.Actor != sm.Server {
		return false
	}
	i := w.holder(w.tasks[slot(m.ID)])
	return i < 0 || w.now <= w.workers[i].lease.ends && s.flaw != impatient
}

// fence is what reading a lost worker does to it, at the same moment.
func (s *setup) fence(n *world, m *sm.Move) {
	if s.lease > 0 && s.takes(m) && m.Actor == sm.Server {
		n.workers[n.holder(n.tasks[slot(m.ID)])].lease.fenced = true
	}
}

// rejects says that a claim comes from an incarnation that is no longer
// registered: another one is, or a server has taken it for dead.
func (s *setup) rejects(w *world, m *sm.Move) bool {
	if s.lease == 0 || m.Event != sm.Claim || s.flaw == anyClaim {
		return false
	}
	for i := range w.workers {
		if l := w.workers[i].lease; l.claims&claimBit(m.Claim) != 0 {
			return l.fenced
		}
	}
	return true
}
