package file

import (
	"errors"
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/store/growth"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Specs makes the tasks of the plan and its later steps as package manager opens them. It checks them by the defaults of TDF, but
// for whether their queues are there. now is for times such as +10m. The error is an [Errors], with one of each step.
func (p *Plan) Specs(now time.Time) ([]task.Spec, []manager.LaterStep, error) {
	var wrong Errors
	specsOf := func(tasks []planTask, lines bool) []task.Spec {
		specs := make([]task.Spec, len(tasks))
		for i := range tasks {
			spec, err := tasks[i].spec(now, lines)
			if err != nil && !slices.ContainsFunc(wrong, func(e *Error) bool { return e.Field == tasks[i].where() }) {
				wrong = append(wrong, p.at(&tasks[i], err))
			}
			specs[i] = spec
		}
		return specs
	}
	specs, later := specsOf(p.tasks, false), make([]manager.LaterStep, len(p.later))
	for i := range p.later {
		l := &p.later[i]
		later[i] = manager.LaterStep{Name: l.tasks[0].step, Lines: l.lines, Most: l.most, Specs: specsOf(l.tasks, l.lines != "")}
		for _, n := range l.needs {
			later[i].Needs = append(later[i].Needs, task.StepNeed{Step: n.Step, On: n.When})
		}
	}
	if len(wrong) > 0 {
		return nil, nil, wrong
	}
	return specs, later, nil
}

// spec makes the task. It is checked without what it needs, since there is no plan yet that has others, and, if lines says that a
// line comes into it, with some line.
func (t *planTask) spec(now time.Time, lines bool) (task.Spec, error) {
	spec := task.Spec{Args: t.args, Step: t.name()}
	for i := range t.fields {
		if err := spec.SetJSON(t.fields[i].name, t.fields[i].json(), now); err != nil {
			return spec, err
		}
	}
	checked := spec
	if lines {
		checked = growth.Sample(spec)
	}
	_, err := task.Define(&checked)
	for _, n := range t.needs {
		spec.Needs = append(spec.Needs, task.Need{Index: n.Task, On: n.When})
	}
	return spec, err
}

func (t *planTask) where() string { return "steps." + t.step }

// At says in which line an error about one of the specs of the plan is: that of the field it names. The error is an [Errors].
func (p *Plan) At(spec *task.Spec, err error) error {
	all := p.all()
	for i := range all {
		if all[i].name() == spec.Step {
			return Errors{p.at(&all[i], err)}
		}
	}
	return err
}

func (p *Plan) at(t *planTask, err error) *Error {
	e := &Error{File: p.from.path, Line: t.line, Field: t.where(), Err: err}
	name := ""
	if field, ok := errors.AsType[*statemachine.FieldError](err); ok {
		name = field.Field
	} else if errors.Is(err, task.ErrNoQueue) {
		name = "queue"
	}
	for i := range t.fields {
		if t.fields[i].name == name {
			e.Line = t.fields[i].line
		}
	}
	return e
}
