package statemachine_test

import (
	"errors"
	"fmt"

	sm "github.com/tdf-go/tdf/statemachine"
)

// checkStop: a stop is asked for by a cancel only and stays asked for; from then
// on the task stays in its round until its end.
func checkStop(before, after *sm.Task, m *sm.Move) error {
	asked := m.Event == sm.Cancel && (m.From == sm.Running || m.From == sm.Executed) && m.To == m.From
	switch {
	case after.StopAsked != (before.StopAsked || asked):
		return fmt.Errorf("task %d: the mark was %v and became %v by a %s", after.ID, before.StopAsked, after.StopAsked, m.Event)
	case before.StopAsked && asked:
		return fmt.Errorf("task %d was marked twice", after.ID)
	case asked && (after.State != before.State || after.Current != before.Current || after.Current.Claim == "" || len(m.Stamps()) > 0):
		return fmt.Errorf("task %d was marked and became %+v", after.ID, after)
	case before.StopAsked && (after.Round != before.Round || after.State == sm.Open):
		return fmt.Errorf("task %d was to be stopped and goes on in round %d", after.ID, after.Round)
	}
	return nil
}

// checkStopError: that error comes exactly to a worker that holds the round and
// wants the task opened again without knowing.
func checkStopError(before *sm.Task, m *sm.Move, err error) error {
	holder := m.Fenced && before.State == sm.Running && before.Round == m.Round && before.Current.Claim == m.Claim
	if errors.Is(err, sm.ErrStopAsked) != (holder && before.StopAsked && m.To == sm.Open) {
		return fmt.Errorf("a %s of task %d, marked %v, got the error %w", m.Event, before.ID, before.StopAsked, err)
	}
	return nil
}

// checkRest: nobody claims a task that rests, and it rests exactly after what
// went wrong with itself, no longer than its backoff says, or as its worker says.
func (s *setup) checkRest(now sm.Time, before, after *sm.Task, m *sm.Move) error {
	said := before.Current.Retry
	switch rests := m.NextRound && (m.Count == sm.Fails || m.Count == sm.Timeouts || m.Count == sm.Faults); {
	case m.Event == sm.Claim && (now < before.NotBefore || now < before.StartAfter):
		return fmt.Errorf("claimed at %d, start_after %d, not_before %d", now, before.StartAfter, before.NotBefore)
	case m.Event == sm.Report && after.Current.Retry != m.Retry:
		return fmt.Errorf("the word about the next round was not recorded: %d", m.Retry)
	case m.NextRound && said == sm.Never:
		return fmt.Errorf("a %s opened a task again that was not to be tried again", m.Event)
	case m.NextRound && said != 0:
		if after.NotBefore != said {
			return fmt.Errorf("the task rests until %d, and its worker said %d", after.NotBefore, said)
		}
	case m.Event == sm.HandBack && m.NotBefore != 0:
		if after.NotBefore != m.NotBefore {
			return fmt.Errorf("handed back until %d, the task rests until %d", m.NotBefore, after.NotBefore)
		}
	case !rests && after.NotBefore != before.NotBefore:
		return fmt.Errorf("a %s made the task rest until %d", m.Event, after.NotBefore)
	case rests && s.task.Backoff.Delay > 0 && (after.NotBefore <= before.Current.Running || after.NotBefore > now.Add(s.task.Backoff.Max)):
		return fmt.Errorf("a %s at %d made the task rest until %d", m.Event, now, after.NotBefore)
	}
	return nil
}

// learnStop is worker i hearing that a stop was asked for the round it holds.
func (s *setup) learnStop(w *world, i int, steps []step) []step {
	mine := w.workers[i].holds
	if mine.StopAsked || !stopHeld(w.tasks[slot(mine.ID)], mine) {
		return steps
	}
	n := *w
	n.workers[i].holds = w.tasks[slot(mine.ID)]
	return append(steps, step{who: "a worker", what: "hears of the stop", world: n})
}

// stopHeld says that a stop was asked for the round that a worker was given.
func stopHeld(t, given *sm.Task) bool {
	return t.StopAsked && t.State == sm.Running && t.Current.Claim != "" && t.Current.Claim == given.Current.Claim
}
