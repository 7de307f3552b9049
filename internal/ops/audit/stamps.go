package audit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
)

// recorded: each round that is over was opened, claimed and worked by somebody,
// and the present one has the moments its state implies.
func (s *sight) recorded() []problem {
	var missing []string
	need := func(round int, names ...string) {
		for _, name := range names {
			if field := statemachine.RoundField(round, name); s.stamps[field] == "" {
				missing = append(missing, field)
			}
		}
	}
	for n := range min(s.Round, mostRounds) {
		need(n, string(statemachine.Open), string(statemachine.Running), "worker")
	}
	if s.Round < mostRounds {
		need(s.Round, s.implied()...)
	}
	if len(missing) == 0 {
		return nil
	}
	return s.violation(Stamps, "it is %s in round %d, but there is no %s",
		s.state(), s.Round, strings.Join(missing, ", "))
}

// implied are the fields the present round must have.
func (s *sight) implied() []string {
	names := []string{string(s.State)}
	if !s.neverOpen() {
		names = append(names, string(statemachine.Open))
	}
	if s.foreignArchive() {
		names = append(names, string(statemachine.Archived))
	}
	last := s.End()
	if last.Ended() {
		names = append(names, string(last))
	}
	switch last {
	case statemachine.Running, statemachine.TimedOut, statemachine.Terminated, statemachine.Orphaned:
		names = append(names, string(statemachine.Running), "worker")
	case statemachine.Executed, statemachine.Succeeded, statemachine.Failed:
		names = append(names, string(statemachine.Running), "worker", string(statemachine.Executed))
	default:
	}
	return names
}

// neverOpen reports whether the task was opened on hold and ended without having
// been released.
func (s *sight) neverOpen() bool {
	switch s.End() {
	case statemachine.Blocked, statemachine.Cancelled, statemachine.Expired:
		return s.Round == 0 && s.stamps[statemachine.RoundField(0, string(statemachine.Blocked))] != ""
	default:
		return false
	}
}

// order: within a round, open or blocked, running, executed, the end; and then the
// next round. A clock that was set back breaks that, and so do the clocks of clients in
// other languages. It is a violation where the events prove that neither was the
// case, and else a note. The first of a task is told.
func (s *sight) order() []problem {
	past := moment{}
	for n := range min(s.Round+1, mostRounds) {
		latest := past
		for _, names := range moments() {
			group := latest
			for _, name := range names {
				m := s.moment(n, name)
				if m.at == 0 {
					continue
				}
				if m.at < latest.at {
					return s.disorder(latest, m)
				}
				group = slices.MaxFunc([]moment{group, m}, func(x, y moment) int { return cmp.Compare(x.at, y.at) })
			}
			latest = group
		}
		past = latest
	}
	return nil
}

// moment is a stamp; ours says that one of our own programs has set it, by the clock of
// Redis.
type moment struct {
	field string
	at    statemachine.Time
	ours  bool
}

// moments are the stamps of a round in order; those in one group come in any order.
func moments() [][]string {
	ends := make([]string, 0, len(statemachine.Outcomes()))
	for _, state := range statemachine.Outcomes() {
		ends = append(ends, string(state))
	}
	return [][]string{
		{string(statemachine.Open), string(statemachine.Blocked)}, {string(statemachine.Running)}, {string(statemachine.Executed)},
		{string(statemachine.StampTimeout), string(statemachine.StampFailure)}, ends, {string(statemachine.Archived)},
	}
}

func (s *sight) moment(round int, name string) moment {
	m := moment{field: statemachine.RoundField(round, name)}
	if text := s.stamps[m.field]; text != "" {
		m.at, _ = statemachine.ParseTime(text) // what is no time is not compared
	}
	switch statemachine.State(name) {
	case statemachine.Archived:
	case statemachine.Open, statemachine.Blocked:
		m.ours = round > 0 || s.history.made[s.ID]
	case statemachine.Running, statemachine.Executed:
		m.ours = s.stamps[statemachine.RoundField(round, "claim")] != ""
	default:
		m.ours = true
	}
	return m
}

func (s *sight) disorder(first, second moment) []problem {
	const format = "%s is %s, before %s at %s"
	if h := s.history; first.ours && second.ours && h.steady && h.first > 0 && second.at >= h.first {
		return s.violation(Order, format, second.field, second.at.Text(), first.field, first.at.Text())
	}
	return s.note(Order, format+": a clock was set back, or is another client's",
		second.field, second.at.Text(), first.field, first.at.Text())
}
