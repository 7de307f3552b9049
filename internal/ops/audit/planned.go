package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/growth"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// suspects are the tasks of a plan about which there may be something to say: it was read piece by piece, so what moved
// meanwhile is among them. An id that a list names and that is no task of the plan is a suspect too.
func (p *planAudit) suspects() (found []int64) {
	for _, id := range p.ids {
		t := p.tasks[id]
		n := neighbours{task: t, plan: p.sum}
		pending := int64(0)
		for _, need := range distinct(t.Needs) {
			if o := p.tasks[need]; o == nil || o.End == statemachine.None && o.RetriedBy == 0 {
				pending++
			}
		}
		blocked := t.State == statemachine.Blocked
		if t.Plan != p.id || blocked && (p.names[id] != t.Waits || t.Waits < pending) {
			found = append(found, id)
			continue
		}
		t.Names = p.names[id]
		n.needs = []plans.Planned{{Names: t.Names, End: statemachine.Succeeded}} // all that name it, as one
		if len(t.Misplaced(&p.sum.Plan))+len(n.records()) > 0 {
			found = append(found, id)
		}
	}
	for id := range p.names {
		if p.tasks[id] == nil {
			found = append(found, id)
		}
	}
	slices.Sort(found)
	return found[:min(len(found), most)]
}

func distinct(needs []task.Need) []int64 {
	ids := make([]int64, len(needs))
	for i, n := range needs {
		ids[i] = n.Task
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// again looks at each suspect with its surroundings, at one moment, and tells of what is wrong then.
func (p *planAudit) again(ctx context.Context, suspects []int64) error {
	for _, id := range suspects {
		n, err := p.around(ctx, id)
		if err != nil {
			return err
		}
		switch t := n.task; {
		case t.State == "": // the walk has told of it, but for what was never there
			if !p.a.givenOut(id) {
				p.a.say(sprint(id, Plan, "plan %d knows of it, and there is no such task", p.id))
			}
			continue
		case t.Plan != p.id && !t.Freed:
			p.a.say(sprint(id, Plan, "plan %d lists it, or a task of it does, but it belongs to plan %d (0: none)", p.id, t.Plan))
			continue
		}
		if n.task.Plan == p.id {
			for _, text := range n.records() {
				p.a.say(sprint(id, Plan, "%s", text))
			}
		}
		for _, text := range n.task.Misplaced(&n.plan.Plan) {
			p.a.say(sprint(id, Plan, "%s", text))
		}
	}
	return nil
}

func (a *auditor) givenOut(id int64) bool { return id > 0 && id <= a.report.TaskID }

// around reads a task together with what it needs, and all that repeat those. Which tasks that are must be known
// before: it is read again until that has not changed.
func (p *planAudit) around(ctx context.Context, id int64) (*neighbours, error) {
	for look := 1; ; look++ {
		first, err := p.a.store.Planned(ctx, p.id, []int64{id}, 0)
		if err != nil {
			return nil, err
		}
		needs, direct, err := p.chain(ctx, distinct(first[0].Needs))
		if err != nil {
			return nil, err
		}
		found, err := p.a.store.Planned(ctx, p.id, append([]int64{id}, needs...), id)
		if err != nil {
			return nil, err
		}
		sum, err := p.a.store.PlanSum(ctx, p.id)
		if err != nil {
			return nil, err
		}
		if look == looks || !grown(found[1:]) {
			return &neighbours{task: &found[0], needs: found[1:], direct: direct, plan: sum}, nil
		}
	}
}

// grown reports whether one of them was retried by a task that is not among them.
func grown(found []plans.Planned) bool {
	there := map[int64]bool{0: true}
	for i := range found {
		there[found[i].ID] = true
	}
	return slices.ContainsFunc(found, func(t plans.Planned) bool { return !there[t.RetriedBy] })
}

// mostRetries bounds how far a task is followed that was retried, as in the scripts.
const mostRetries = 100

// chain are tasks and all that repeat them, in the order of ids, and says which of the tasks have not been retried.
func (p *planAudit) chain(ctx context.Context, ids []int64) (all []int64, direct map[int64]bool, err error) {
	direct = map[int64]bool{}
	for turn := 0; len(ids) > 0 && turn < mostRetries; turn++ {
		found, err := p.a.store.Planned(ctx, p.id, ids, 0)
		if err != nil {
			return nil, nil, err
		}
		all, ids = append(all, ids...), nil
		for i := range found {
			t := &found[i]
			direct[t.ID] = turn == 0 && t.RetriedBy == 0
			if t.RetriedBy > t.ID { // a retry is always newer
				ids = append(ids, t.RetriedBy)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), direct, nil
}

// leftToDo checks that a running plan with tasks to move is on the list of the servers.
func (p *planAudit) leftToDo(ctx context.Context) error {
	sum, err := p.a.store.PlanSum(ctx, p.id)
	if err != nil || sum.State != task.PlanReady || sum.Freed == 0 || sum.Draining {
		return err
	}
	p.a.say(sprint(0, Plan, "%d tasks of plan %d wait to be moved, and the plan is not on the list of the servers", sum.Freed, p.id))
	return nil
}

// neighbours is a task of a plan with the tasks that it needs and all that repeat those, at one moment.
type neighbours struct {
	task  *plans.Planned
	needs []plans.Planned
	// direct are those of needs that have not been retried.
	direct map[int64]bool
	plan   *plans.PlanSum
}

// records are what the records of a task and of those that need it say, and cannot.
func (n *neighbours) records() (found []string) {
	t := n.task
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	switch {
	case t.Dependants+t.Stuck > 0 && t.RetriedBy != 0:
		say("task %d repeats it, but %d still wait for it", t.RetriedBy, t.Dependants+t.Stuck)
	case t.Dependants+t.Stuck > 0 && !t.Feeds:
		say("%d need it, but it does not say so: they will not be told of its end", t.Dependants+t.Stuck)
	case t.Stuck > 0 && !t.Draining:
		say("%d that need it were put aside in the middle of being told, and no server goes on with it", t.Stuck)
	}
	if t.Waits > 0 && t.DoomedBy == 0 && begun(t) {
		say("it is %s, but has not got the results of %d that it needs", t.State, t.Waits)
	}
	if t.State == statemachine.Blocked {
		found = append(found, n.waits()...)
	}
	return found
}

// begun reports whether a task has been open: it may be called off, or expire, while it waits for others.
func begun(t *plans.Planned) bool {
	switch t.End {
	case statemachine.None:
		return t.State != statemachine.Blocked && t.State != ""
	case statemachine.Cancelled, statemachine.Expired:
		return false
	default:
		return true
	}
}

// waits: a task waits for as many as will tell it of their end.
func (n *neighbours) waits() (found []string) {
	t, names := n.task, int64(0)
	for i := range n.needs {
		need := &n.needs[i]
		names += need.Names
		if need.End == statemachine.None && need.Names == 0 && n.direct[need.ID] {
			found = append(found, fmt.Sprintf("it needs task %d, which has not ended and will not tell it", need.ID))
		}
	}
	if names != t.Waits && found == nil {
		found = append(found, fmt.Sprintf("it waits for %d, but %d will tell it of their end", t.Waits, names))
	}
	return found
}

// growth audits the steps of a plan that are opened once it runs. What is wrong is looked at again, as servers may be at
// work on them: it stands only if it is there at both looks, with the plan as it was.
func (p *planAudit) growth(ctx context.Context) error {
	var before *growthLook
	for look := 1; look <= looks; look++ {
		now, err := p.lookAtGrowth(ctx)
		switch {
		case errors.Is(err, conn.ErrNoPlan):
			return nil
		case err != nil:
			return err
		case now.sound():
			return nil
		case before != nil && before.same(now):
			now.tell(p)
			return nil
		}
		before = now
	}
	p.a.remark(sprint(0, Plan, "plan %d grew all the time: its steps were not compared; verify again", p.id))
	return nil
}

// growthLook is what one look has found.
type growthLook struct {
	sum   *plans.PlanSum
	wrong []string
	// due is a step that can be opened and is not on the list of the servers; empty for none.
	due string
}

func (l *growthLook) sound() bool { return len(l.wrong) == 0 && l.due == "" }

func (l *growthLook) same(as *growthLook) bool {
	return still(l.sum, as.sum) && slices.Equal(l.wrong, as.wrong) && l.due == as.due
}

func (l *growthLook) tell(p *planAudit) {
	for _, text := range l.wrong {
		p.a.say(sprint(0, Plan, "plan %d: %s", p.id, text))
	}
	if l.due != "" {
		p.a.say(sprint(0, Plan, "step %s of plan %d is due, and not on the list of the servers", l.due, p.id))
	}
}

func (p *planAudit) lookAtGrowth(ctx context.Context) (*growthLook, error) {
	v, err := growth.Read(ctx, p.a.store, p.id)
	if errors.Is(err, growth.ErrTemplate) {
		sum, err2 := p.a.store.PlanSum(ctx, p.id)
		return &growthLook{sum: sum, wrong: []string{err.Error()}}, err2
	}
	if err != nil {
		return nil, err
	}
	l := &growthLook{}
	if l.sum, err = p.a.store.PlanSum(ctx, p.id); err != nil {
		return nil, err
	}
	if len(v.Status) > 0 {
		l.compare(v, p)
	}
	runs := l.sum.State == task.PlanReady && l.sum.GrowthError == "" && !l.sum.Growth
	for i := range v.Status {
		if runs && l.due == "" && (v.Status[i].Fate == growth.Due || l.sum.Left <= 0 && v.Status[i].Fate != growth.Opened) {
			l.due = v.Steps[i].Name
		}
	}
	return l, nil
}

// compare compares what is recorded of the steps with what the plan counts and with its tasks.
func (l *growthLook) compare(v *growth.View, p *planAudit) {
	say := func(format string, args ...any) { l.wrong = append(l.wrong, fmt.Sprintf(format, args...)) }
	left, seen, names := int64(0), map[int64]string{}, map[string]int64{}
	for i := range v.Status {
		name := v.Steps[i].Name
		if is := v.Plan.Steps[i]; !is.Opened && !is.Skipped {
			left++
		}
		for _, id := range v.Status[i].Tasks {
			t := p.tasks[id]
			if other, twice := seen[id]; twice {
				say("task %d stands for step %s and for step %s", id, other, name)
			}
			seen[id] = name
			switch {
			case t == nil && id <= p.a.report.TaskID:
				say("step %s has opened task %d, which the plan does not list", name, id)
			case t != nil:
				names[t.Step] = id
			}
		}
	}
	for _, t := range p.tasks {
		if other := names[t.Step]; t.Step != "" && other != 0 && seen[t.ID] == "" && !p.repeats(t.ID) {
			say("task %d is %s as well as task %d", t.ID, t.Step, other)
		}
	}
	slices.Sort(l.wrong)
	if left != v.Plan.Growing {
		say("%d steps are not opened, and it counts %d", left, v.Plan.Growing)
	}
}

// repeats reports whether a task of the plan repeats another one.
func (p *planAudit) repeats(id int64) bool {
	for _, t := range p.tasks {
		if t.RetriedBy == id {
			return true
		}
	}
	return false
}
