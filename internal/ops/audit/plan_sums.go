package audit

import (
	"slices"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// tallied is how many tasks of a plan there are by what became of them, without those that were retried.
type tallied struct {
	total, left, bad, skipped int64
	ended                     map[statemachine.State]int64
}

func (p *planAudit) tallied() tallied {
	n := tallied{ended: map[statemachine.State]int64{}}
	for _, t := range p.tasks {
		switch {
		case t.RetriedBy != 0:
			continue
		case t.End == statemachine.None:
			n.left++
		case t.Skipped:
			n.skipped++
		default:
			n.ended[t.End]++
			if t.End != statemachine.Succeeded {
				n.bad++
			}
		}
		n.total++
	}
	return n
}

// addPurged adds those that have left Redis, which the plan has counted.
func (n *tallied) addPurged(s *store.PlanSum) {
	n.total, n.skipped = n.total+s.PurgedSkipped, n.skipped+s.PurgedSkipped
	for end, gone := range s.PurgedEnded {
		n.total += gone
		n.ended[end] += gone
		if end != statemachine.Succeeded {
			n.bad += gone
		}
	}
}

// sums compares what a plan counts with its tasks, and with its state. Where tasks have ended meanwhile each sum must
// lie between what it was before and after; where tasks were added meanwhile nothing is said about it.
func (p *planAudit) sums(before, after *store.PlanSum) []Violation {
	found := p.state(after)
	if before.Listed != after.Listed || before.Purged != after.Purged {
		p.a.remark(sprint(0, Plan, "plan %d grew, or its tasks left Redis, all the time: what it counts was not compared; verify again", p.id))
		return found
	}
	if int64(len(p.tasks))+p.gone != after.Listed {
		return found // see belonging
	}
	if p.gone != after.Purged {
		found = append(found, sprint(0, Plan, "plan %d counts %d tasks that have left Redis, and there are %d", p.id, after.Purged, p.gone))
	}
	n := p.tallied()
	n.addPurged(after)
	check := func(what string, counted, was, is int64) {
		if counted < min(was, is) || counted > max(was, is) {
			found = append(found, sprint(0, Plan, "plan %d counts %d %s, and there are %d", p.id, is, what, counted))
		}
	}
	check("tasks", n.total, before.Total, after.Total)
	check("that have not ended", n.left, before.Left, after.Left)
	check("that ended badly", n.bad, before.Bad, after.Bad)
	check("that were skipped", n.skipped, before.Skipped, after.Skipped)
	for _, end := range statemachine.Outcomes() {
		check(string(end), n.ended[end], before.Ended[end], after.Ended[end])
	}
	return found
}

// state: a plan is over when nothing of it is left, and then it says how it went.
func (p *planAudit) state(s *store.PlanSum) []Violation {
	wrong := func(format string, args ...any) []Violation {
		return []Violation{sprint(0, Plan, "plan %d is %s, but "+format, slices.Concat([]any{p.id, s.State}, args)...)}
	}
	over := s.State == store.PlanCompleted || s.State == store.PlanFailed
	runs := s.State == store.PlanReady || s.State == store.PlanHeld
	switch {
	case !over && !runs && s.State != store.PlanBuilding && s.State != store.PlanCancelled:
		return wrong("there is no such state")
	case runs && s.Left <= 0 && s.Growing <= 0 && !s.Growth:
		return wrong("all its tasks have ended")
	}
	if found := p.steps(s, wrong); found != nil || !over {
		return found
	}
	return p.over(s, wrong)
}

// steps: those that are to be opened are kept as long as they are.
func (p *planAudit) steps(s *store.PlanSum, wrong func(string, ...any) []Violation) []Violation {
	switch {
	case s.Growing > 0 && !s.Kept:
		return wrong("%d of its steps are to be opened, and are kept nowhere", s.Growing)
	case s.Growing <= 0 && s.Kept && !s.Growth:
		return wrong("it keeps steps, of which none is to be opened")
	case s.Growing > 0 && (s.State == store.PlanCompleted || s.State == store.PlanCancelled):
		return wrong("%d of its steps were not opened", s.Growing)
	}
	return nil
}

// over: a plan that is over has no task left, and says how it went, and since when.
func (p *planAudit) over(s *store.PlanSum, wrong func(string, ...any) []Violation) []Violation {
	switch {
	case s.Left > 0:
		return wrong("%d of its tasks have not ended", s.Left)
	case s.State == store.PlanCompleted && s.Bad > 0:
		return wrong("%d of its tasks ended badly", s.Bad)
	case s.State == store.PlanFailed && s.Bad <= 0 && s.GrowthError == "":
		return wrong("none of its tasks ended badly")
	case s.Over == 0:
		return wrong("it does not say since when")
	}
	return nil
}
