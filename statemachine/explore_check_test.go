package statemachine_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	sm "github.com/tdf-go/tdf/statemachine"
)

// applied is w after m has arrived, with everything the arrival broke.
func (s *setup) applied(w *world, m *sm.Move) (world, sm.Result, error) {
	if s.rejects(w, m) || s.notTheirs(w, m) {
		return *w, sm.Refused, nil
	}
	i := slot(m.ID)
	before := *w.tasks[i]
	apply := s.apply
	if apply == nil {
		apply = sm.Apply
	}
	after, result, err := apply(before, *m, w.now)
	if result == sm.Moved && s.former(w, m) {
		return *w, sm.Refused, nil
	}
	n := *w
	if result != sm.Moved {
		return n, result, errors.Join(checkRefused(&before, &after, result, err), checkStopError(&before, m, err))
	}
	if plain := m.Unsettled(); after.State == plain.To {
		m = &plain
	}
	n.tasks[i] = &after
	n.keepBooks(m, i)
	n.keep(s, w)
	return n, result, errors.Join(
		checkOrigin(w, &before, m), checkTiming(w.now, &before, m),
		checkRounds(&before, &after, m), checkLimits(&after), checkEnd(&before, &after),
		checkStop(&before, &after, m), s.checkRest(w.now, &before, &after, m),
		n.checkTask(i), s.checkHeld(&n, &after), s.checkHandled(&n, m), checkLoss(w, m), checkAhead(w, m),
	)
}

// keepBooks notes what really happened: the lists as the store would move them,
// the claims that were granted, the times a task was archived.
func (n *world) keepBooks(m *sm.Move, i int) {
	n.lists[i] = n.lists[i]&^listBit(m.From) | listBit(m.End())
	switch {
	case m.Event == sm.Claim:
		n.grants[i]++
		if m.Claim != "" {
			n.granted[m.Claim[0]-'a'] = grant{task: m.ID, round: m.Round, given: true}
		}
	case m.NextRound:
		n.grants[i] = 0
	case m.End() == sm.Archived:
		n.archived[i]++
	}
}

func listBit(s sm.State) uint16 {
	if s == sm.None {
		return 0
	}
	return 1 << stateBits[s]
}

// checkTask is what must hold of task i in every situation.
func (n *world) checkTask(i int) error {
	t := n.tasks[i]
	switch {
	case t.AtOnce && t.State.IsOutcome():
		return fmt.Errorf("task %d is %s, and was to be archived at once", t.ID, t.State)
	case n.lists[i] != listBit(t.State):
		return fmt.Errorf("task %d is %s but stands in the lists %b", t.ID, t.State, n.lists[i])
	case n.grants[i] > 1:
		return fmt.Errorf("task %d: two claims of round %d were accepted", t.ID, t.Round)
	case n.archived[i] > 1:
		return fmt.Errorf("task %d was archived twice", t.ID)
	}
	return nil
}

// checkHolders: no two workers have been told that the same round is theirs.
func (n *world) checkHolders() error {
	for i, a := range n.workers {
		for _, b := range n.workers[:i] {
			if a.holds != nil && b.holds != nil && a.epoch == b.epoch && a.holds.ID == b.holds.ID && a.holds.Round == b.holds.Round {
				return fmt.Errorf("task %d, round %d: two workers believe that it is theirs", a.holds.ID, a.holds.Round)
			}
			if runs, other := n.program(&a), n.program(&b); runs != nil && other != nil && runs.ID == other.ID {
				return fmt.Errorf("task %d runs twice at the same time, in the rounds %d and %d", runs.ID, runs.Round, other.Round)
			}
		}
		if err := n.checkHandedBack(n.program(&a)); err != nil {
			return err
		}
	}
	return n.checkHandlers()
}

// checkRefused: what is refused or repeated changes nothing.
func checkRefused(before, after *sm.Task, result sm.Result, err error) error {
	if (result == sm.Refused) != (err != nil) {
		return fmt.Errorf("result %d comes with the error %w", result, err)
	}
	if !reflect.DeepEqual(before, after) {
		return fmt.Errorf("task %d was changed by a move that was not made", before.ID)
	}
	return nil
}

// checkOrigin: the task was exactly where the move was decided, and a worker
// writes only into the round that it was given.
func checkOrigin(w *world, before *sm.Task, m *sm.Move) error {
	if !m.Fenced {
		if before.Rev != m.Rev {
			return fmt.Errorf("a decision made at rev %d was carried out at rev %d", m.Rev, before.Rev)
		}
		return nil
	}
	if given := w.granted[m.Claim[0]-'a']; given != (grant{m.ID, before.Round, true}) {
		return fmt.Errorf("claim %q was given %+v and wrote into round %d of task %d", m.Claim, given, before.Round, before.ID)
	}
	return nil
}

// checkTiming: nobody expires, times out or judges a task whose time has not come.
func checkTiming(now sm.Time, before *sm.Task, m *sm.Move) error {
	switch {
	case m.Event == sm.Deadline && m.To == sm.Expired && now <= before.EndBefore:
		return fmt.Errorf("expired at %d although end_before is %d", now, before.EndBefore)
	case m.Event == sm.Deadline && m.Via == sm.StampTimeout && now.Sub(before.Current.Running) <= before.Timeout:
		return fmt.Errorf("timed out at %d although it runs only since %d", now, before.Current.Running)
	case m.Event == sm.Settle && (m.To == sm.Expired) != (before.Current.Executed > before.EndBefore):
		return fmt.Errorf("executed at %d of %d and settled as %s", before.Current.Executed, before.EndBefore, m.To)
	case m.Settles():
		return checkSettled(now, before, m)
	case m.To == sm.Succeeded && (before.Current.Failed || before.State != sm.Executed):
		return errors.New("a round with an error, or without a report, succeeded")
	}
	return nil
}

// checkSettled: a worker settles a success alone, in time, of the task that it was given.
func checkSettled(now sm.Time, before *sm.Task, m *sm.Move) error {
	switch {
	case m.Failed:
		return errors.New("a worker settled a round with an error")
	case before.StopAsked:
		return errors.New("a worker settled a round after a stop was asked for")
	case before.Rev != m.Rev:
		return fmt.Errorf("a worker that was given rev %d settled rev %d", m.Rev, before.Rev)
	case now > before.EndBefore || now.Sub(before.Current.Running) > before.Timeout:
		return fmt.Errorf("a worker settled at %d what runs since %d and ends before %d", now, before.Current.Running, before.EndBefore)
	}
	return nil
}

// checkRounds: closed rounds never change, an open one is written once, and the
// counters say how every round ended.
func checkRounds(before, after *sm.Task, m *sm.Move) error {
	past := before.Past
	if after.Round != before.Round {
		closed := before.Current
		if m.Fenced {
			closed.End = m.Event
		}
		past = append(slices.Clip(past), closed)
		if after.Current != (sm.Round{}) {
			return fmt.Errorf("round %d begins with %+v", after.Round, after.Current)
		}
	} else if was, is := before.Current, after.Current; was.End != "" && was != is ||
		was.Running != 0 && was.Running != is.Running || was.Claim != "" && was.Claim != is.Claim {
		return fmt.Errorf("round %d was %+v and became %+v", after.Round, was, is)
	}
	if !slices.Equal(past, after.Past) || len(past) != after.Round {
		return fmt.Errorf("the closed rounds %+v became %+v", past, after.Past)
	}
	return checkCounters(after)
}

// checkCounters: round = fails + timeouts + losses + releases + faults, and one
// less where the last count ended the task instead of opening a round.
func checkCounters(t *sm.Task) error {
	sum := t.Fails + t.Timeouts + t.Losses + t.Releases + t.Faults
	if end := t.End(); end == sm.Failed || end == sm.TimedOut || end == sm.Orphaned {
		sum--
	}
	if sum != t.Round {
		return fmt.Errorf("task %d is %s in round %d with counters %d, %d, %d, %d, %d",
			t.ID, t.State, t.Round, t.Fails, t.Timeouts, t.Losses, t.Releases, t.Faults)
	}
	return nil
}

// checkLimits: a counter exceeds its limit by one, and only in the outcome that
// says so; and that outcome has such a counter, unless a stop was asked for or the
// worker said that the task is not to be tried again.
func checkLimits(t *sm.Task) error {
	end := t.End()
	reason := t.StopAsked || end == sm.Failed && t.Current.Retry == sm.Never
	for _, c := range []struct {
		count int
		limit sm.Limit
		end   sm.State
	}{
		{t.Fails, t.MaxFails, sm.Failed}, {t.Faults, t.MaxFaults, sm.Failed},
		{t.Timeouts, t.MaxTimeouts, sm.TimedOut}, {t.Losses, t.MaxLosses, sm.Orphaned},
	} {
		over := sm.Limit(c.count) - c.limit
		if over > 1 || over == 1 && end != c.end {
			return fmt.Errorf("task %d is %s with %d of %d towards %s", t.ID, t.State, c.count, c.limit, c.end)
		}
		reason = reason || over == 1
	}
	if !reason && (end == sm.Failed || end == sm.TimedOut || end == sm.Orphaned) {
		return fmt.Errorf("task %d is %s within all limits", t.ID, end)
	}
	return nil
}

// checkEnd: what is settled stays, except that it is archived once.
func checkEnd(before, after *sm.Task) error {
	if before.State.Terminal() && (before.State == sm.Archived || after.State != sm.Archived) {
		return fmt.Errorf("task %d left %s for %s", before.ID, before.State, after.State)
	}
	way := after.Outcome == before.State || after.AtOnce && after.Outcome.IsOutcome()
	if (after.State == sm.Archived) != (after.Outcome != sm.None) || after.State == sm.Archived && !way {
		return fmt.Errorf("task %d is %s with the outcome %q", after.ID, after.State, after.Outcome)
	}
	return nil
}
