package statemachine_test

import (
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
}

func defects() []defect {
	return []defect{
		{"fence off", "a late message", "wrote into round", twisted(func(t *sm.Task, m *sm.Move) {
			if m.Fenced {
				m.Claim, m.Round = t.Current.Claim, t.Round
			}
		})},
		{"revision not compared", "an operator", "was carried out at rev", twisted(func(t *sm.Task, m *sm.Move) { m.Rev = t.Rev })},
		{"only the state compared", "many rounds", "was carried out at rev", twisted(func(t *sm.Task, m *sm.Move) { m.Rev, m.Round = t.Rev, t.Round })},
		{"nothing compared", "many programs", "was carried out at rev", twisted(func(t *sm.Task, m *sm.Move) {
			m.From, m.Rev, m.Round, m.Claim, m.Fenced = t.State, t.Rev, t.Round, t.Current.Claim, false
		})},
		{"counter not raised", "many rounds", "with counters", twisted(func(_ *sm.Task, m *sm.Move) { m.Count = "" })},
		{"round not raised", "many rounds", "with counters", twisted(func(_ *sm.Task, m *sm.Move) { m.NextRound = false })},
		{"repeats carried out", "many programs", "was carried out at rev", repeatsCarriedOut},
		{"past rounds forgotten", "many rounds", "closed rounds", pastForgotten},
		{"foreign claims repeated", "foreign workers", "two workers believe", foreignClaimsRepeated},
		{"archiving refused", "two tasks", "nothing leads to archived", archivingRefused},
	}
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

func archivingRefused(t sm.Task, m sm.Move, now sm.Time) (sm.Task, sm.Result, error) {
	if m.Event == sm.Archive && t.ID == 2 {
		return t, sm.Refused, sm.ErrConflict
	}
	return sm.Apply(t, m, now)
}

// TestExploreBites: the same exploration finds each defect.
func TestExploreBites(t *testing.T) {
	t.Parallel()
	for _, d := range defects() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range worlds() {
				if s.name != d.world {
					continue
				}
				s.apply = d.apply
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
