package audit

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// planAudit is the audit of one plan.
type planAudit struct {
	a   *auditor
	id  int64
	sum *plans.PlanSum
	// tasks are all of them as they were seen, in the order of ids.
	tasks map[int64]*plans.Planned
	ids   []int64
	// names is how often the lists of dependants name a task.
	names map[int64]int64
	// gone is how many of its tasks have left Redis; these are not in tasks.
	gone int64
}

// plans audits all plans: what they count, what each task waits for, and whether servers have on their lists what
// keeps a plan going. It comes after the walk over the tasks, which says to which plan each of them belongs.
func (a *auditor) plans(ctx context.Context) error {
	ids, err := a.planIDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := a.plan(ctx, id); err != nil {
			return err
		}
		a.report.Plans++
		delete(a.members, id)
	}
	if len(a.members) > 0 {
		if err := a.readPurged(ctx); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(a.members)) {
		for _, task := range a.members[id] {
			if a.isPurged(task) { // and the plan with it
				continue
			}
			a.say(sprint(task, Plan, "it belongs to plan %d, and there is no such plan", id))
		}
	}
	return nil
}

func (a *auditor) planIDs(ctx context.Context) ([]int64, error) {
	seen := map[int64]bool{}
	for offset := 0; ; offset += chunk {
		found, err := a.store.ListPlans(ctx, offset, chunk)
		if err != nil || len(found) == 0 {
			return slices.Sorted(maps.Keys(seen)), err
		}
		for i := range found {
			seen[found[i].ID] = true // new ones push the others back: some come twice
		}
	}
}

// plan audits one plan. What is wrong with a task is looked at again together with all that it needs, at one moment;
// what the plan counts is judged when the plan stood still, or, if it never does, by what it may have gone through.
func (a *auditor) plan(ctx context.Context, id int64) error {
	for look := 1; ; look++ {
		p := &planAudit{a: a, id: id}
		before, after, err := p.read(ctx)
		if errors.Is(err, conn.ErrNoPlan) {
			return nil
		}
		if err != nil {
			return err
		}
		if !still(before, after) && look < looks {
			continue
		}
		for _, v := range p.sums(before, after) {
			a.say(v)
		}
		p.belonging(after)
		if err := p.leftToDo(ctx); err != nil {
			return err
		}
		if err := p.growth(ctx); err != nil {
			return err
		}
		return p.again(ctx, p.suspects())
	}
}

// still reports whether nothing was added to a plan, retried, ended, or opened of its steps between two looks: what is
// listed only grows, and while it does not, what is left only shrinks.
func still(before, after *plans.PlanSum) bool {
	return before.Listed == after.Listed && before.Left == after.Left && before.State == after.State &&
		before.Purged == after.Purged && before.Growing == after.Growing && before.Growth == after.Growth
}

// read reads the whole plan, and what it counts before and after that.
func (p *planAudit) read(ctx context.Context) (before, after *plans.PlanSum, err error) {
	if before, err = p.a.store.PlanSum(ctx, p.id); err != nil {
		return nil, nil, err
	}
	p.sum = before
	p.tasks, p.names, p.ids, p.gone = map[int64]*plans.Planned{}, map[int64]int64{}, nil, 0
	for offset := 0; ; offset += chunk {
		ids, err := p.a.store.PlanTasks(ctx, p.id, offset, chunk)
		if err != nil {
			return nil, nil, err
		}
		if len(ids) == 0 {
			break
		}
		found, err := p.a.store.Planned(ctx, p.id, ids, 0)
		if err != nil {
			return nil, nil, err
		}
		if err := p.a.learnGone(ctx, found); err != nil {
			return nil, nil, err
		}
		for i := range found {
			if found[i].State == "" && p.a.isPurged(found[i].ID) {
				p.gone++
				continue
			}
			p.tasks[found[i].ID] = &found[i]
			if err := p.readNames(ctx, &found[i]); err != nil {
				return nil, nil, err
			}
		}
	}
	p.ids = slices.Sorted(maps.Keys(p.tasks))
	if err := p.readFreed(ctx); err != nil {
		return nil, nil, err
	}
	after, err = p.a.store.PlanSum(ctx, p.id)
	return before, after, err
}

// readFreed counts the ids that wait to be moved and are no task of the plan as named by it.
func (p *planAudit) readFreed(ctx context.Context) error {
	for offset := 0; ; offset += namesPage {
		ids, err := p.a.store.FreedIDs(ctx, p.id, offset, namesPage)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			if p.tasks[id] == nil {
				p.names[id]++
			}
		}
	}
}

// namesPage is how many dependants one call reads.
const namesPage = 5000

// readNames counts whom the lists of a task name.
func (p *planAudit) readNames(ctx context.Context, t *plans.Planned) error {
	for _, list := range []struct {
		stuck bool
		n     int64
	}{{false, t.Dependants}, {true, t.Stuck}} {
		for offset := 0; int64(offset) < list.n; offset += namesPage {
			ids, err := p.a.store.Dependants(ctx, t.ID, list.stuck, offset, namesPage)
			if err != nil {
				return err
			}
			for _, id := range ids {
				p.names[id]++
			}
		}
	}
	return nil
}

// belonging compares the list of the plan with the tasks that say they belong to it.
func (p *planAudit) belonging(sum *plans.PlanSum) {
	for _, id := range p.a.members[p.id] {
		if p.tasks[id] == nil && !p.a.isPurged(id) {
			p.a.say(sprint(id, Plan, "it belongs to plan %d, which does not list it", p.id))
		}
	}
	if n := int64(len(p.tasks)) + p.gone; n < sum.Listed && still(p.sum, sum) {
		p.a.say(sprint(0, Plan, "plan %d lists %d tasks, some of them twice, or what is no id", p.id, sum.Listed))
	}
}

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
func (n *tallied) addPurged(s *plans.PlanSum) {
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
func (p *planAudit) sums(before, after *plans.PlanSum) []Violation {
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
func (p *planAudit) state(s *plans.PlanSum) []Violation {
	wrong := func(format string, args ...any) []Violation {
		return []Violation{sprint(0, Plan, "plan %d is %s, but "+format, slices.Concat([]any{p.id, s.State}, args)...)}
	}
	over := s.State == task.PlanCompleted || s.State == task.PlanFailed
	runs := s.State == task.PlanReady || s.State == task.PlanHeld
	switch {
	case !over && !runs && s.State != task.PlanBuilding && s.State != task.PlanCancelled:
		return wrong("there is no such state")
	case runs && s.Left <= 0 && s.Growing <= 0 && !s.Growth:
		return wrong("all its tasks have ended")
	}
	if found := p.steps(s, wrong); found != nil || !over {
		return found
	}
	return p.over(s, wrong)
}

// steps: a plan keeps them until all are opened.
func (p *planAudit) steps(s *plans.PlanSum, wrong func(string, ...any) []Violation) []Violation {
	switch {
	case s.Growing > 0 && !s.Kept:
		return wrong("%d of its steps are not opened, and are kept nowhere", s.Growing)
	case s.Growing <= 0 && s.Kept && !s.Growth:
		return wrong("it keeps steps, and all are opened")
	case s.Growing > 0 && (s.State == task.PlanCompleted || s.State == task.PlanCancelled):
		return wrong("%d of its steps were not opened", s.Growing)
	}
	return nil
}

// over: a plan that is over has no task left, and says how it went, and since when.
func (p *planAudit) over(s *plans.PlanSum, wrong func(string, ...any) []Violation) []Violation {
	switch {
	case s.Left > 0:
		return wrong("%d of its tasks have not ended", s.Left)
	case s.State == task.PlanCompleted && s.Bad > 0:
		return wrong("%d of its tasks ended badly", s.Bad)
	case s.State == task.PlanFailed && s.Bad <= 0 && s.GrowthError == "":
		return wrong("none of its tasks ended badly")
	case s.Over.IsZero():
		return wrong("it does not say since when")
	}
	return nil
}
