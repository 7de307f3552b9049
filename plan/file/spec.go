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
	specsOf := func(tasks []Task, lines bool) []task.Spec {
		specs := make([]task.Spec, len(tasks))
		for i := range tasks {
			spec, err := tasks[i].spec(now, lines)
			if err != nil && !slices.ContainsFunc(wrong, func(e *Error) bool { return e.Field == tasks[i].where() }) {
				wrong = append(wrong, p.At(&tasks[i], err))
			}
			specs[i] = spec
		}
		return specs
	}
	specs, later := specsOf(p.Tasks, false), make([]manager.LaterStep, len(p.Later))
	for i := range p.Later {
		l := &p.Later[i]
		later[i] = manager.LaterStep{Name: l.Tasks[0].Step, Lines: l.Lines, Most: l.Most, Specs: specsOf(l.Tasks, l.Lines != "")}
		for _, n := range l.Needs {
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
func (t *Task) spec(now time.Time, lines bool) (task.Spec, error) {
	spec := task.Spec{Args: t.Args, Step: t.Name()}
	for i := range t.Fields {
		if err := spec.SetJSON(t.Fields[i].Name, t.Fields[i].JSON(), now); err != nil {
			return spec, err
		}
	}
	checked := spec
	if lines {
		checked = growth.Sample(spec)
	}
	_, err := task.Define(&checked)
	for _, n := range t.Needs {
		spec.Needs = append(spec.Needs, task.Need{Index: n.Task, On: n.When})
	}
	return spec, err
}

func (t *Task) where() string { return "steps." + t.Step }

// At says in which line an error about a task is: that of the field it names.
func (p *Plan) At(t *Task, err error) *Error {
	e := &Error{File: p.path, Line: t.Line, Field: t.where(), Err: err}
	name := ""
	if field, ok := errors.AsType[*statemachine.FieldError](err); ok {
		name = field.Field
	} else if errors.Is(err, task.ErrNoQueue) {
		name = "queue"
	}
	for i := range t.Fields {
		if t.Fields[i].Name == name {
			e.Line = t.Fields[i].Line
		}
	}
	return e
}
