package trace

import (
	"fmt"
	"slices"
	"strings"

	sm "github.com/tdf-go/tdf/statemachine"
)

// place is where a task may be, as far as later steps depend on it.
type place struct {
	state sm.State
	round int
	// stop says that a stop was asked for; foreign, that the round was claimed by
	// a client that leaves no events.
	stop, foreign bool
}

func (p place) String() string { return fmt.Sprintf("%s, round %d", told(p.state), p.round) }

// anywhere is every place of a task of which only state and round are known;
// none if not even these are.
func anywhere(s sm.State, round int) []place {
	if s == sm.None || round < 0 {
		return nil
	}
	var all []place
	for _, stop := range []bool{false, true} {
		for _, foreign := range []bool{false, true} {
			all = append(all, place{s, round, stop, foreign})
		}
	}
	return all
}

// moved is where the task is once row was taken.
func (p place) moved(row *sm.Transition) place {
	p.state = row.To
	p.stop = p.stop || row.AskStop
	if row.NextRound {
		p.round++
	}
	if row.NextRound || row.Event == sm.Claim {
		p.foreign = false
	}
	return p
}

// foreign adds the places to which foreign clients may have moved the task
// without an event.
func foreign(at []place) []place {
	at = slices.Clone(at)
	for i := 0; i < len(at); i++ {
		p := at[i]
		switch {
		case p.state == sm.None:
			p.state = sm.Open
		case p.state == sm.Open:
			p.state, p.foreign = sm.Running, true
		case p.state == sm.Running && p.foreign:
			p.state = sm.Executed
		case p.state.Ended():
			p.state = sm.Archived
		default:
			continue
		}
		if !slices.Contains(at, p) {
			at = append(at, p)
		}
	}
	return at
}

// truth is what can be known of a condition.
type truth int

const (
	no truth = iota
	perhaps
	yes
)

// holds says whether a row can be taken at p. Times, limits and what the program
// said are not recorded. To ask for a stop again changes nothing, and is no step.
func (p place) holds(row *sm.Transition) truth {
	if row.AskStop && p.stop {
		return no
	}
	switch row.When {
	case sm.Always:
		return yes
	case sm.StopWasAsked:
		return certainly(p.stop)
	case sm.ForeignRound:
		return certainly(p.foreign)
	case sm.TimedOutOnceMore, sm.OneMoreTimeout, sm.OneMoreLoss, sm.ExcusedOnceMore, sm.FailedOnceMore:
		if p.stop {
			return no
		}
		return perhaps
	default:
		return perhaps
	}
}

func certainly(b bool) truth {
	if b {
		return yes
	}
	return no
}

// why says what is wrong with e, of a task that may be at any of these places.
func (c *checker) why(at []place, e Event) string {
	var rows []*sm.Transition
	for i := range c.rows {
		if row := &c.rows[i]; row.Event == e.Event && row.From == e.From && row.To == e.To && slices.Contains(row.Actors, e.Actor) {
			rows = append(rows, row)
		}
	}
	all := foreign(at)
	there := slices.ContainsFunc(all, func(p place) bool { return p.state == e.From && p.round == e.Round })
	switch {
	case len(rows) == 0:
		return fmt.Sprintf("the table has no such step of a %s", e.Actor)
	case !there:
		return "the task was at " + places(at)
	case slices.ContainsFunc(all, func(p place) bool { return p.foreign && p.state == e.From }) && rows[0].Fenced:
		return "nobody has recorded a claim of this round"
	case rows[0].AskStop && !slices.ContainsFunc(all, func(p place) bool { return !p.stop }):
		return "a stop was asked for before"
	default:
		return "the table has this step under another condition only: " + string(rows[0].When)
	}
}

// places tells each state and round once.
func places(at []place) string {
	var names []string
	for _, p := range at {
		if name := p.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}
