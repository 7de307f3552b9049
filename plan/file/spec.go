package file

import (
	"cmp"
	"errors"
	"slices"
	"strings"
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
			spec, err := tasks[i].spec(now, lines, p.uploaded)
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
func (t *planTask) spec(now time.Time, lines bool, uploaded map[string]string) (task.Spec, error) {
	spec := task.Spec{Args: t.args, Step: t.name()}
	for i := range t.fields {
		if t.fields[i].name == uploadField {
			continue
		}
		if err := spec.SetJSON(t.fields[i].name, t.fields[i].json(), now); err != nil {
			return spec, err
		}
	}
	if up := t.upload(); up != nil {
		if err := takeAlong(&spec, up.value, uploaded[up.value.text]); err != nil {
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

// upload is the field of what the task takes along, nil if there is none.
func (t *planTask) upload() *taskField {
	i := slices.IndexFunc(t.fields, func(f taskField) bool { return f.name == uploadField })
	if i < 0 {
		return nil
	}
	return &t.fields[i]
}

// takeAlong makes the source of a task mean what it takes along, under that hash, which is empty as long as it is not known.
func takeAlong(spec *task.Spec, upload value, hash string) error {
	refused := func(want string) error {
		return &statemachine.FieldError{Field: uploadField, Value: upload.text, Want: want}
	}
	hash = cmp.Or(hash, strings.Repeat("0", 64))
	switch {
	case upload.text == "" || upload.list != nil || upload.pairs != nil:
		return refused("the name of a directory or a file")
	case spec.Source == "":
		spec.Source = task.BlobSource(hash)
	case strings.HasPrefix(spec.Source, task.CommandPrefix) && task.SourceSHA256(spec.Source) == "":
		source := spec.Source + task.Pin(hash)
		if _, err := task.ParseSource(source); err != nil {
			return &statemachine.FieldError{Field: sourceField, Value: spec.Source, Want: "a command in what upload takes along; " +
				"write a name, an absolute path, or a path such as ./simulate that begins there"}
		}
		spec.Source = source
	default:
		return refused("possible beside source, which names another program; leave one of them out, or write source: command:NAME")
	}
	return nil
}

// TakeAlong gives put what steps take along (field upload), a directory or a file by its name in the plan file, and keeps the hash
// that it returns for [Plan.Specs], which has none before. program is what is to run from there, empty for a command. put is called once
// for each name and program; the error names the step and the line.
func (p *Plan) TakeAlong(put func(name, program string) (sha256 string, err error)) error {
	type along struct{ name, program string }
	done := map[along]bool{}
	p.uploaded = map[string]string{}
	for _, t := range p.all() {
		up := t.upload()
		if up == nil {
			continue
		}
		what := along{name: up.value.text}
		if !slices.ContainsFunc(t.fields, func(f taskField) bool { return f.name == sourceField }) {
			i := slices.IndexFunc(t.fields, func(f taskField) bool { return f.name == programField })
			what.program = t.fields[i].value.text // which is there: checked
		}
		if done[what] {
			continue
		}
		hash, err := put(what.name, what.program)
		if err != nil {
			return Errors{{File: p.from.path, Line: up.line, Field: t.where() + "." + uploadField, Err: err}}
		}
		done[what], p.uploaded[what.name] = true, hash
	}
	return nil
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
