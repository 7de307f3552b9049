package statemachine_test

import (
	"slices"
	"strings"
	"testing"

	sm "github.com/tdf-go/tdf/statemachine"
)

// apply is the signature of [sm.Apply].
type apply = func(sm.Task, sm.Move, sm.Time) (sm.Task, sm.Result, error)

// defect is an Apply with one thing wrong, and what the exploration says of it.
type defect struct {
	name, world, says string
	apply             apply
	flaw              flaw
}

func defects() []defect {
	const twice = "runs twice at the same time"
	all := []defect{
		{name: "a server that does not wait", world: "leases", says: twice, flaw: impatient},
		{name: "a worker that runs on", world: "leases", says: twice, flaw: runsOn},
		{name: "a late claim of a former incarnation", world: "leases and a late message", says: "nobody holds it", flaw: anyClaim},
		{name: "fence off", world: "a late message", says: "wrote into round", apply: twisted(func(t *sm.Task, m *sm.Move) {
			if m.Fenced {
				m.Claim, m.Round = t.Current.Claim, t.Round
			}
		})},
		{name: "revision not compared", world: "an operator", says: "was carried out at rev", apply: twisted(func(t *sm.Task, m *sm.Move) { m.Rev = t.Rev })},
		{name: "only the state compared", world: "many rounds", says: "was carried out at rev", apply: twisted(func(t *sm.Task, m *sm.Move) { m.Rev, m.Round = t.Rev, t.Round })},
		{name: "nothing compared", world: "many programs", says: "was carried out at rev", apply: twisted(func(t *sm.Task, m *sm.Move) {
			m.From, m.Rev, m.Round, m.Claim, m.Fenced = t.State, t.Rev, t.Round, t.Current.Claim, false
		})},
		{name: "counter not raised", world: "many rounds", says: "with counters", apply: twisted(func(_ *sm.Task, m *sm.Move) { m.Count = "" })},
		{name: "round not raised", world: "many rounds", says: "with counters", apply: twisted(func(_ *sm.Task, m *sm.Move) { m.NextRound = false })},
		{name: "repeats carried out", world: "many programs", says: "was carried out at rev", apply: repeatsCarriedOut},
		{name: "past rounds forgotten", world: "many rounds", says: "closed rounds", apply: pastForgotten},
		{name: "foreign claims repeated", world: "foreign workers", says: "two workers believe", apply: foreignClaimsRepeated},
		{name: "a stop not remembered", world: "a stop", says: "the mark was", apply: twisted(func(_ *sm.Task, m *sm.Move) { m.AskStop = false })},
		{name: "a stop asked for twice", world: "a stop", says: "was marked twice", apply: markedTwice},
		{name: "a stop not compared", world: "a stop", says: "was to be stopped and goes on", apply: twisted(func(_ *sm.Task, m *sm.Move) { m.StopAsked = true })},
		{name: "a rest forgotten", world: "rests", says: "made the task rest until", apply: twisted(func(_ *sm.Task, m *sm.Move) { m.NotBefore = 0 })},
		{name: "a word not recorded", world: "words of the worker", says: "was not recorded", apply: twisted(func(_ *sm.Task, m *sm.Move) { m.Retry = 0 })},
		{name: "a word forgotten", world: "words of the worker", says: "and its worker said", apply: twisted(func(t *sm.Task, m *sm.Move) {
			if t.Current.Retry != 0 {
				m.NotBefore = 0
			}
		})},
		{name: "faults not counted", world: "rests", says: "with counters", apply: twisted(func(_ *sm.Task, m *sm.Move) {
			if m.Count == sm.Faults {
				m.Count = ""
			}
		})},
		{name: "settled too late", world: "settled by workers", says: "a worker settled at", apply: twisted(func(_ *sm.Task, m *sm.Move) {
			if m.Settles() {
				m.Until = sm.Never
			}
		})},
		{name: "settled at another revision", world: "settled by workers", says: "settled rev", apply: twisted(func(t *sm.Task, m *sm.Move) {
			if m.Settles() {
				m.Rev = t.Rev
			}
		})},
		{name: "settled after a stop", world: "settled by workers, and a stop", says: "after a stop was asked for", apply: settledAfterStop},
		{name: "not archived at once", world: "archived at once", says: "was to be archived at once", apply: twisted(func(_ *sm.Task, m *sm.Move) { m.Archives = false })},
		{name: "archived again", world: "archived at once, and a stop", says: "was archived twice", apply: archivedAgain},
		{name: "archiving refused", world: "two tasks", says: "nothing leads to archived", apply: archivingRefused},
	}
	return slices.Concat(all, handlingDefects(), lossDefects(), aheadDefects())
}

// twisted is Apply with a move that was changed on the way.
func twisted(twist func(*sm.Task, *sm.Move)) apply {
	return func(t sm.Task, m sm.Move, now sm.Time) (sm.Task, sm.Result, error) {
		twist(&t, &m)
		return sm.Apply(t, m, now)
	}
}

func repeatsCarriedOut(t sm.Task, m sm.Move, now sm.Time) (sm.Task, sm.Result, error) {
	after, result, err := sm.Apply(t, m, now)
	if result == sm.Repeated {
		after.Rev++
		result = sm.Moved
	}
	return after, result, err
}

// archivedAgain takes a move from an outcome for one from the archive.
func archivedAgain(t sm.Task, m sm.Move, now sm.Time) (sm.Task, sm.Result, error) {
	if t.State == sm.Archived && t.Rev == m.Rev+1 && !m.Fenced {
		t.State, t.Rev = m.From, m.Rev
	}
	return sm.Apply(t, m, now)
}

func pastForgotten(t sm.Task, m sm.Move, now sm.Time) (sm.Task, sm.Result, error) {
	after, result, err := sm.Apply(t, m, now)
	if result == sm.Moved {
		after.Past = nil
	}
	return after, result, err
}

func foreignClaimsRepeated(t sm.Task, m sm.Move, now sm.Time) (sm.Task, sm.Result, error) {
	if m.Event == sm.Claim && t.State == sm.Running && m.Claim == t.Current.Claim {
		return t, sm.Repeated, nil
	}
	return sm.Apply(t, m, now)
}

func markedTwice(t sm.Task, m sm.Move, now sm.Time) (sm.Task, sm.Result, error) {
	after, result, err := sm.Apply(t, m, now)
	if m.AskStop && result == sm.Repeated && t.Rev == m.Rev {
		after.Rev++
		return after, sm.Moved, nil
	}
	return after, result, err
}

func settledAfterStop(t sm.Task, m sm.Move, now sm.Time) (sm.Task, sm.Result, error) {
	asked := t.StopAsked
	if m.Settles() && asked {
		m.Rev, t.StopAsked = t.Rev, false
	}
	after, result, err := sm.Apply(t, m, now)
	after.StopAsked = after.StopAsked || asked
	return after, result, err
}

func archivingRefused(t sm.Task, m sm.Move, now sm.Time) (sm.Task, sm.Result, error) {
	if m.Event == sm.Archive && t.ID == 2 {
		return t, sm.Refused, sm.ErrConflict
	}
	return sm.Apply(t, m, now)
}

// TestLongExploreBites: the same exploration finds each defect.
func TestLongExploreBites(t *testing.T) {
	t.Parallel()
	for _, d := range defects() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range worlds() {
				if s.name != d.world {
					continue
				}
				s.apply, s.flaw = d.apply, d.flaw
				e := explore(&s, 500_000)
				said := ""
				switch {
				case e.fault != nil:
					said = e.fault.Error()
				case e.stuck > 0:
					said = "nothing leads to archived"
				}
				if !strings.Contains(said, d.says) {
					t.Errorf("%d states, found %q", e.states, said)
				}
				t.Logf("found after %d states:\n%s", e.states, said)
			}
		})
	}
}
