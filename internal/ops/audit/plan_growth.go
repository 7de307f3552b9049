package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/growth"
)

// growth audits the steps of a plan that are opened once it runs. What is wrong is looked at again, as servers may be at
// work on them: it stands only if it is there at both looks, with the plan as it was.
func (p *planAudit) growth(ctx context.Context) error {
	var before *growthLook
	for look := 1; look <= looks; look++ {
		now, err := p.lookAtGrowth(ctx)
		switch {
		case errors.Is(err, store.ErrNoPlan):
			return nil
		case err != nil:
			return err
		case now.sound():
			return nil
		case before != nil && before.same(now):
			return now.tell(ctx, p)
		}
		before = now
	}
	p.a.remark(sprint(0, Plan, "plan %d grew all the time: its steps were not compared; verify again", p.id))
	return nil
}

// growthLook is what one look has found.
type growthLook struct {
	sum   *store.PlanSum
	wrong []string
	// due is a step that can be opened, and the servers do not know; empty for none.
	due string
}

func (l *growthLook) sound() bool { return len(l.wrong) == 0 && l.due == "" }

func (l *growthLook) same(as *growthLook) bool {
	return still(l.sum, as.sum) && slices.Equal(l.wrong, as.wrong) && l.due == as.due
}

func (l *growthLook) tell(ctx context.Context, p *planAudit) error {
	for _, text := range l.wrong {
		p.a.wrongPlan(sprint(0, Plan, "plan %d: %s", p.id, text))
	}
	if l.due == "" {
		return nil
	}
	return p.mendable(ctx, 0, sprint(0, Plan, "step %s of plan %d is to be looked at, and the servers do not know", l.due, p.id))
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
	runs := l.sum.State == store.PlanReady && l.sum.GrowthError == "" && !l.sum.Growth
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
		say("%d steps are to be opened, and it counts %d", left, v.Plan.Growing)
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
