package audit

import (
	"context"
	"slices"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// suspects are the tasks of a plan about which there may be something to say: it was read piece by piece, so what moved
// meanwhile is among them. Whoever is named by a list and is no task of the plan is one too.
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
		n.needs = []store.Planned{{Names: t.Names, End: statemachine.Succeeded}} // all that name it, as one
		if len(n.moves())+len(n.records()) > 0 {
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

func distinct(needs []store.Need) []int64 {
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
				p.a.wrongPlan(sprint(id, Plan, "plan %d knows of it, and there is no such task", p.id))
			}
			continue
		case t.Plan != p.id && t.Freed:
			v := sprint(id, Plan, "it is among the tasks of plan %d to be moved, but belongs to plan %d (0: none)", p.id, t.Plan)
			if err := p.mendable(ctx, id, v); err != nil {
				return err
			}
			continue
		case t.Plan != p.id:
			p.a.wrongPlan(sprint(id, Plan, "plan %d lists it, or a task of it does, but it belongs to plan %d (0: none)", p.id, t.Plan))
			continue
		}
		for _, text := range n.records() {
			p.a.wrongPlan(sprint(id, Plan, "%s", text))
		}
		for _, text := range n.moves() {
			if err := p.mendable(ctx, id, sprint(id, Plan, "%s", text)); err != nil {
				return err
			}
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
func grown(found []store.Planned) bool {
	there := map[int64]bool{0: true}
	for i := range found {
		there[found[i].ID] = true
	}
	return slices.ContainsFunc(found, func(t store.Planned) bool { return !there[t.RetriedBy] })
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

// leftToDo: what is to be moved of a plan that runs is known to the servers.
func (p *planAudit) leftToDo(ctx context.Context) error {
	sum, err := p.a.store.PlanSum(ctx, p.id)
	if err != nil || sum.State != store.PlanReady || sum.Freed == 0 || sum.Draining {
		return err
	}
	return p.mendable(ctx, 0, sprint(0, Plan, "%d tasks of plan %d are to be moved, and the servers do not know", sum.Freed, p.id))
}

// mendable tells of something that the script redrain puts right, and lets it.
func (p *planAudit) mendable(ctx context.Context, task int64, v Violation) error {
	p.a.say(v)
	if p.a.fix == nil {
		return nil
	}
	if !p.a.fix.opt.DryRun {
		if err := p.a.store.Redrain(ctx, p.id, task); err != nil {
			return err
		}
	}
	p.a.fix.did("put where it belongs", v)
	return nil
}
