package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tdf-go/tdf/internal/store/growth"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// suspects are the tasks of a plan about which there may be something to say: it was read piece by piece, so what moved
// meanwhile is among them. An id that a list names and that is no task of the plan is a suspect too.
func (p *planAudit) suspects() (found []int64) {
	for id, t := range p.tasks {
		pending := int64(0)
		for _, need := range distinct(t.Needs) {
			if o := p.tasks[need]; o == nil || o.End == statemachine.None && o.RetriedBy == 0 {
				pending++
			}
		}
		miscounted := t.State == statemachine.Blocked && (p.names[id] != t.Waits || t.Waits < pending)
		if t.Plan != p.id || miscounted || len(t.Misplaced(&p.before.Plan))+len(wrongRecords(t)) > 0 {
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
		say := func(format string, args ...any) { p.a.say(sprint(id, Plan, format, args...)) }
		t, needs, err := p.around(ctx, id)
		if err != nil {
			return err
		}
		sum, err := p.a.store.PlanSum(ctx, p.id)
		if err != nil {
			return err
		}
		var found []string
		switch {
		case t.State == "" && (id < 1 || id > p.a.report.TaskID):
			say("plan %d knows of it, and there is no such task", p.id)
		case t.State == "": // the walk has told of it
		case t.Plan == p.id:
			found = slices.Concat(wrongRecords(t), wrongWaits(t, needs), t.Misplaced(&sum.Plan))
		case t.Freed:
			found = t.Misplaced(&sum.Plan)
		default:
			say("plan %d lists it, or a task of it does, but it belongs to plan %d (0: none)", p.id, t.Plan)
		}
		for _, text := range found {
			say("%s", text)
		}
	}
	return nil
}

// mostRetries bounds how far a task is followed that was retried, as in the scripts.
const mostRetries = 100

// around reads a task together with what it needs, and all that repeat those. Which tasks that are shows only when they are
// read: they are read again until all are among them.
func (p *planAudit) around(ctx context.Context, id int64) (t *plans.Planned, needs []plans.Planned, err error) {
	ids := []int64{id}
	for range mostRetries + 2 { // the first look is at the task alone, the last one finds nothing new
		found, err := p.a.store.Planned(ctx, p.id, ids, id)
		if err != nil {
			return nil, nil, err
		}
		t, needs = &found[0], found[1:]
		more := distinct(t.Needs)
		for i := range needs {
			if needs[i].RetriedBy > needs[i].ID { // a retry is always newer
				more = append(more, needs[i].RetriedBy)
			}
		}
		slices.Sort(more)
		if more = slices.Compact(more); slices.Equal(more, ids[1:]) {
			break
		}
		ids = append(ids[:1], more...)
	}
	return t, needs, nil
}

// wrongRecords are what the record of a task says, and cannot.
func wrongRecords(t *plans.Planned) (found []string) {
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	switch {
	case t.Dependants+t.Stuck > 0 && t.RetriedBy != 0:
		say("task %d repeats it, but %d still wait for it", t.RetriedBy, t.Dependants+t.Stuck)
	case t.Dependants+t.Stuck > 0 && !t.Feeds:
		say("%d need it, but it does not say so: they will not be told of its end", t.Dependants+t.Stuck)
	case t.Stuck > 0 && !t.Draining:
		say("%d of its dependants were left half told, and no server goes on with them", t.Stuck)
	}
	if t.Waits > 0 && t.DoomedBy == 0 && begun(t) {
		say("it is %s, but has not got the results of %d that it needs", t.State, t.Waits)
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

// wrongWaits: a blocked task waits for as many as will tell it of their end. needs are what it needs, and all that repeat those.
func wrongWaits(t *plans.Planned, needs []plans.Planned) (found []string) {
	if t.State != statemachine.Blocked {
		return nil
	}
	names, direct := int64(0), distinct(t.Needs)
	for i := range needs {
		need := &needs[i]
		names += need.Names
		if need.End == statemachine.None && need.Names == 0 && need.RetriedBy == 0 && slices.Contains(direct, need.ID) {
			found = append(found, fmt.Sprintf("it needs task %d, which has not ended and will not tell it", need.ID))
		}
	}
	if names != t.Waits && found == nil {
		found = append(found, fmt.Sprintf("it waits for %d, but %d will tell it of their end", t.Waits, names))
	}
	return found
}

// steps says what is wrong with the steps of a plan that are opened once it runs, if it stood still while that was read. A plan
// at work does not for as long as all its tasks take: then its steps alone are looked at again.
func (p *planAudit) steps(ctx context.Context) error {
	of := *p
	found := of.wrong()
	for look := 1; len(found) > 0 && !of.still() && look < looks; look++ {
		var err error
		if of.before, err = p.a.store.PlanSum(ctx, p.id); err != nil {
			return err
		}
		if err := of.readSteps(ctx); err != nil {
			return err
		}
		found = of.wrong()
	}
	switch {
	case len(found) == 0:
	case of.still():
		p.a.say(found...)
	default:
		p.a.remark(sprint(0, Plan, "plan %d grew all the time: its steps were not compared; verify again", p.id))
	}
	return nil
}

// wrong is what one look has found of the steps.
func (p *planAudit) wrong() []Violation {
	switch {
	case p.unreadable != nil:
		return []Violation{sprint(0, Plan, "plan %d: %v", p.id, p.unreadable)}
	case len(p.view.Status) == 0:
		return nil
	default:
		return append(p.wrongSteps(), p.due()...)
	}
}

// due looks for a step that can be opened while the plan is not on the list of the servers.
func (p *planAudit) due() []Violation {
	sum := p.after
	i := slices.IndexFunc(p.view.Status, func(s growth.Status) bool {
		return s.Fate == growth.Due || sum.Left <= 0 && s.Fate != growth.Opened
	})
	if i < 0 || sum.State != task.PlanReady || sum.GrowthError != "" || sum.Growth {
		return nil
	}
	return []Violation{sprint(0, Plan, "step %s of plan %d is due, and not on the list of the servers", p.view.Steps[i].Name, p.id)}
}

// wrongSteps compares what is recorded of the steps with what the plan counts and with its tasks.
func (p *planAudit) wrongSteps() (found []Violation) {
	say := func(format string, args ...any) {
		found = append(found, sprint(0, Plan, "plan %d: "+format, slices.Insert(args, 0, any(p.id))...))
	}
	v := p.view
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
		if other := names[t.Step]; t.Step != "" && other != 0 && seen[t.ID] == "" && !p.repeats[t.ID] {
			say("task %d is %s as well as task %d", t.ID, t.Step, other)
		}
	}
	slices.SortFunc(found, func(x, y Violation) int { return cmp.Compare(x.Text, y.Text) })
	if left != v.Plan.Growing {
		say("%d steps are not opened, and it counts %d", left, v.Plan.Growing)
	}
	return found
}
