package trace

import (
	"slices"

	sm "github.com/tdf-go/tdf/statemachine"
)

// Where is the state and round of a task.
type Where struct {
	State sm.State
	Round int
}

// Ends is where the events leave each task that they name. A task is missing if
// the last thing that happened to it is a repair that set it aside.
func Ends(events []Event) map[int64]Where {
	c := checker{rows: sm.Table(), tasks: map[int64][]place{}, first: firstCreated(events)}
	for _, e := range events {
		c.step(e)
	}
	ends := make(map[int64]Where, len(c.tasks))
	for id, at := range c.tasks {
		if len(at) > 0 {
			ends[id] = Where{at[0].state, at[0].round}
		}
	}
	return ends
}

// MayBe reports whether a task that the events have left at w can be found at
// other: it is there, or foreign clients have moved it on.
func (w Where) MayBe(other Where) bool {
	return slices.ContainsFunc(foreign(anywhere(w.State, w.Round)), func(p place) bool {
		return p.state == other.State && p.round == other.Round
	})
}
