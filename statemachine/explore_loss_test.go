package statemachine_test

import (
	"fmt"
	"slices"

	sm "github.com/tdf-go/tdf/statemachine"
)

// history is what has to be known where Redis loses changes that it has
// acknowledged: it goes back to the moment before its last ones, and a server
// that has seen more opens a new epoch before anything else happens there. Who
// calls between the two is refused, because it has seen more as well; that this
// is so is assumed here (see docs/model for what happens if it is not).
type history struct {
	// epoch is the one in force, from 0 on.
	epoch int8
	// made is the epoch of the session that made each claim.
	made [maxClaims]int8
	// kept are the moments before the last changes, the latest first.
	kept [maxKept]*kept
	// lost are the ids that were given out and are no longer known to Redis: for
	// the assertions only.
	lost [maxTasks]int64
}

// kept is Redis at one moment, with the books about it.
type kept struct {
	tasks    [maxTasks]*sm.Task
	lists    [maxTasks]uint16
	grants   [maxTasks]int8
	archived [maxTasks]int8
}

// encode writes what can make a difference later.
func (h *history) encode(s *setup, b []byte) []byte {
	if s.losses == 0 {
		return b
	}
	b = append(b, byte(h.epoch))
	for _, e := range h.made {
		b = append(b, byte(e))
	}
	for _, k := range h.kept[:s.depth] {
		if k == nil {
			b = append(b, 0)
			continue
		}
		for i := range s.tasks {
			b = appendTask(append(b, 1, byte(k.grants[i]), byte(k.archived[i])), k.tasks[i])
		}
	}
	for _, id := range h.lost {
		b = append(b, byte(id))
	}
	return b
}

// keep notes the moment w, before the change that made n of it, as long as Redis
// may go back to it.
func (n *world) keep(s *setup, w *world) {
	h := &n.history
	if h.epoch == s.losses {
		return
	}
	copy(h.kept[1:s.depth], h.kept[:])
	h.kept[0] = &kept{w.tasks, w.lists, w.grants, w.archived}
}

// loseHistory is Redis going back by up to depth changes, and a server opening
// the next epoch.
func (s *setup) loseHistory(w *world, steps []step) []step {
	for i := range s.depth {
		if w.history.kept[i] != nil && w.history.epoch < s.losses {
			steps = append(steps, step{who: "Redis", what: fmt.Sprintf("loses the last %d changes", i+1), world: s.lose(w, w.history.kept[i])})
		}
	}
	return steps
}

// lose is w once Redis has gone back to was. No claim made so far may be written
// under any more, and ids go on beyond all that were given out.
func (s *setup) lose(w *world, was *kept) world {
	n := *w
	n.tasks, n.lists, n.grants, n.archived = was.tasks, was.lists, was.grants, was.archived
	n.granted = [maxClaims]grant{}
	n.history.epoch++
	n.history.kept = [maxKept]*kept{}
	for i := range s.tasks {
		if n.tasks[i].State != sm.None || w.tasks[i].State == sm.None {
			continue
		}
		n.history.lost[i] = n.tasks[i].ID
		if s.flaw != sameIDs {
			t := *n.tasks[i]
			t.ID += maxTasks
			n.tasks[i] = &t
		}
	}
	return n
}

// decidedIn notes the epoch of a decision, where its revision is the fence: the
// place of the claim is free there.
func (n *world) decidedIn(s *setup, m *sm.Move) {
	if s.losses > 0 && !m.Fenced {
		m.Claim = string(rune('0' + n.history.epoch))
	}
}

// former says that m belongs to an epoch that is over: the claim it speaks for,
// the session that claims, or the decision was made there.
func (s *setup) former(w *world, m *sm.Move) bool {
	switch {
	case s.losses == 0:
		return false
	case m.ID != w.tasks[slot(m.ID)].ID:
		return true
	case m.Fenced:
		return s.flaw != anyEpoch && w.claimedIn(m.Claim) < w.history.epoch
	case m.Event == sm.Claim:
		return w.claimedIn(m.Claim) < w.history.epoch
	default:
		return (s.flaw != oldDecisions || m.Event != sm.Settle) && m.Claim != string(rune('0'+w.history.epoch))
	}
}

// claimedIn is the epoch of the session that made a claim.
func (n *world) claimedIn(claim string) int8 { return n.history.made[claim[0]-'a'] }

// void says that t runs in a round of an epoch that is over.
func (s *setup) void(w *world, t *sm.Task) bool {
	return s.losses > 0 && s.flaw != charged && t.State == sm.Running && w.claimedIn(t.Current.Claim) < w.history.epoch
}

// leaves says that a server has no reason to take the task from its worker: it
// lives, as far as anybody knows. What it does not know to be its own is the
// server's to release.
func (s *setup) leaves(w *world, t *sm.Task) bool {
	if s.losses == 0 {
		return false
	}
	if w.claimedIn(t.Current.Claim) < w.history.epoch {
		return s.flaw == notReleased
	}
	return slices.ContainsFunc(w.workers[:], func(me worker) bool {
		return me.holds != nil && me.holds.Current.Claim == t.Current.Claim || me.waits != nil && me.waits.Claim == t.Current.Claim
	})
}

// learnEpoch is worker i hearing that its session is over: it drops what it has
// and registers anew.
func (s *setup) learnEpoch(w *world, i int, steps []step) []step {
	if w.workers[i].epoch == w.history.epoch {
		return steps
	}
	n := *w
	n.workers[i] = worker{epoch: n.history.epoch}
	return append(steps, step{who: "a worker", what: "learns that a new epoch has begun", world: n})
}

// spent says that a task waits for a claim, or for a manager, and that all claims
// or grants of a history that is explored have been made.
func (n *world) spent(s *setup) bool {
	bounded := s.losses > 0 || s.handling > 0
	return bounded && slices.ContainsFunc(n.tasks[:s.tasks], func(t *sm.Task) bool {
		claims := s.workers > 0 && t.State == sm.Open && int(n.made) == s.claims
		grants := s.handling > 0 && t.State.IsOutcome() && n.desk.granted == s.grants
		return claims || grants
	})
}

// checkLoss: no task pays for what Redis has lost, and no id means two tasks.
func checkLoss(w *world, m *sm.Move) error {
	h := &w.history
	switch {
	case m.Event == sm.Create && h.lost[slot(m.ID)] == m.ID:
		return fmt.Errorf("id %d was given out twice", m.ID)
	case m.Event == sm.Lose && h.epoch > 0 && m.Count != sm.Releases && w.claimedIn(w.tasks[slot(m.ID)].Current.Claim) < h.epoch:
		return fmt.Errorf("task %d pays for a loss of Redis: %q", m.ID, m.Count)
	}
	return nil
}

// lossWorlds are worlds in which Redis goes back in time.
func lossWorlds() []setup {
	by := work(nil)
	task := sm.Task{EndBefore: sm.Never, Timeout: sm.Forever, MaxFails: 1, MaxLosses: 1}
	report := []sm.Event{sm.Report}
	return []setup{
		{name: "lost changes", tasks: 1, workers: 2, servers: 1, claims: 2, task: task, by: by, ways: report, losses: 1, depth: 3},
		{name: "lost changes and a late message", tasks: 1, workers: 1, servers: 1, late: 1, claims: 2, task: task, by: by, ways: report, losses: 1, depth: 2},
		{name: "lost changes of two servers", tasks: 1, workers: 1, servers: 2, managers: 2, claims: 2, task: task, by: by, ways: report, losses: 1, depth: 2},
		{name: "lost changes, settled by workers", tasks: 1, workers: 2, servers: 1, claims: 2, task: task, by: by, ways: report, losses: 1, depth: 2, settles: true},
		{name: "lost changes, twice", tasks: 1, workers: 1, servers: 1, claims: 3, task: task, by: by, ways: report, losses: 2, depth: 2},
	}
}

func lossDefects() []defect {
	return []defect{
		{name: "reports of a former epoch", world: "lost changes", says: "wrote into round", flaw: anyEpoch},
		{name: "judgements of a former epoch", world: "lost changes", says: "a round with an error, or without a report, succeeded", flaw: oldDecisions},
		{name: "ids given out again", world: "lost changes", says: "was given out twice", flaw: sameIDs},
		{name: "rounds of a former epoch charged", world: "lost changes", says: "pays for a loss of Redis", flaw: charged},
		{name: "rounds of a former epoch left", world: "lost changes", says: "nothing leads to archived", flaw: notReleased},
	}
}
