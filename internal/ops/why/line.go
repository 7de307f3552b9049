package why

import (
	"cmp"
	"slices"

	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/statemachine"
)

// head is the next task of a line, as it competes with those of other lines of
// its queue.
type head struct {
	line *lane
	Waiting
	rank int64
}

// lane is a line that is being taken from.
type lane struct {
	Line
	demand route.Resources
	next   int
}

// rank is the priority raised by what the task has waited.
func rank(q *route.Queue, b route.Bucket, due, at statemachine.Time) int64 {
	r := int64(b.Priority)
	if aging := q.EffectiveAging(); aging > 0 {
		r += int64(at-due) / int64(aging)
	}
	return r
}

// order sorts heads as they are claimed.
func order(q *route.Queue, heads []head) {
	slices.SortFunc(heads, func(x, y head) int {
		older := cmp.Or(cmp.Compare(x.Due, y.Due), cmp.Compare(x.ID, y.ID))
		if q.Order == route.Lifo {
			older = -older
		}
		return cmp.Or(cmp.Compare(y.rank, x.rank), older)
	})
}

// heads are the next tasks of the lanes, in the order in which they are claimed.
func heads(q *route.Queue, lanes []*lane, at statemachine.Time) []head {
	var found []head
	for _, l := range lanes {
		if l.next < len(l.First) {
			w := l.First[l.next]
			found = append(found, head{line: l, Waiting: w, rank: rank(q, l.Bucket, w.Due, at)})
		}
	}
	order(q, found)
	return found
}

// best is the lane whose head is claimed next: the first that finds what it
// demands. Those before it keep what they demand.
func best(q *route.Queue, lanes []*lane, at statemachine.Time, s shelf) *lane {
	kept := map[string]bool{}
	for _, h := range heads(q, lanes, at) {
		if !s.short(h.line.demand, kept) {
			return h.line
		}
		keep(kept, h.line.demand)
	}
	return nil
}
