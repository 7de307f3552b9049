package plan

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tdf-go/tdf/manager"
)

// Send adds to the plan what [Plan.Add] has gathered. After an error nothing is
// lost: called again, it goes on where it was, unless a task cannot be, which is
// a *[DependencyError] or a *[TaskError]: then nothing more is ever sent. The error matches
// [manager.ErrPlanState] if the plan is over.
func (p *Plan) Send(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrong != nil {
		return p.wrong
	}
	for {
		if len(p.batch) == 0 {
			p.batch, p.pending = p.pending, nil
		}
		if len(p.batch) == 0 {
			return nil
		}
		if err := p.send(ctx); err != nil {
			return err
		}
		p.sent += len(p.batch)
		p.batch = nil
	}
}

// send sends the portion under way. Its key is made from its place, so that the
// same program makes the same requests when it begins again.
func (p *Plan) send(ctx context.Context) error {
	key := fmt.Sprintf("%s:%d:%d", p.key, p.id, p.sent)
	ids, err := p.m.OpenAll(ctx, p.specs(), manager.InPlan(p.id), manager.WithRequestKey(key))
	for i, id := range ids {
		p.batch[i].id = id
	}
	return p.blame(err)
}

// specs are the tasks of the portion under way.
func (p *Plan) specs() iter.Seq[manager.Spec] {
	return func(yield func(manager.Spec) bool) {
		for _, t := range p.batch {
			spec := t.spec
			spec.Needs = make([]manager.Need, len(t.deps))
			for i, d := range t.deps {
				spec.Needs[i] = d.within(p.sent)
			}
			if !yield(spec) {
				return
			}
		}
	}
}

// within is the need as it is told in a portion that begins after so many tasks.
func (d dependency) within(first int) manager.Need {
	need := d.need
	switch {
	case d.of == nil:
	case d.of.index >= first:
		need.Index = d.of.index - first
	default:
		need.Task = d.of.id
	}
	return need
}

// blame names the task of the plan that an error is about.
func (p *Plan) blame(err error) error {
	index := -1
	if one, ok := errors.AsType[*manager.SpecError](err); ok {
		index, err = one.Index, one.Err
	} else if need, ok := errors.AsType[*manager.NeedError](err); ok {
		sub, _ := errors.AsType[*manager.SubmissionError](err)
		index, err = sub.Opened+need.Index, need
	}
	if index < 0 || index >= len(p.batch) {
		return err
	}
	return &TaskError{Index: p.sent + index, Program: p.batch[index].spec.Program, Err: err}
}
