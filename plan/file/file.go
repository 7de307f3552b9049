// Package file reads plan files: plans written as YAML. It parses and checks a file, fills in its
// parameters, and expands its steps into tasks, without Redis. It returns all errors as an [Errors], each with its line.
//
// docs/PLANFILE.md describes the format.
package file

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/task"
)

// document is a plan file that was read and checked, but for what depends on values of its parameters.
type document struct {
	// path is where it was read from, for errors.
	path string
	// name and onFailure are as in Plan, but parameters in the name are not filled in yet.
	name, onFailure string
	nameLine        int
	// params are in the order of the file, and so are steps.
	params   []param
	defaults []taskField
	steps    []step
	index    map[string]int // of steps, by name
}

// param is a parameter of a plan.
type param struct {
	name string
	line int
	// value is what it is if none is given; required says that one must be.
	value    value
	required bool
}

// step is a step of a plan: a task, or one for each item of a list.
type step struct {
	name string
	line int
	// fields are those of its task, without those of the defaults.
	fields []taskField
	needs  []need
	// args says how its program gets the results of what it needs: words, files, or empty for the default.
	args    string
	foreach *foreach
}

// taskField is a field of a task as it stands in the file.
type taskField struct {
	name  string
	line  int
	value value
}

// need is a step that another one needs.
type need struct {
	Step string    `json:"step"`
	Line int       `json:"-"`
	When task.When `json:"when"`
}

// foreach is what a step is repeated for: the items, or those of a parameter, or the lines of the result of a step.
type foreach struct {
	line  int
	items []string
	param string
	// lines is the step, empty for none; most is how many lines there may be.
	lines string
	most  int
}

// Names of fields of a step which are not those of a task.
const (
	needsField   = "needs"
	argsField    = "args"
	foreachField = "foreach"
	uploadField  = "upload" // may stand in defaults too; see Plan.TakeAlong
)

// Names of fields of a task that this package knows.
const (
	programField   = "program"
	sourceField    = "source"
	inputField     = "input"
	argvField      = "argv"
	paramsField    = "params"
	variablesField = "variables"
	returnField    = "return"
	keyField       = "key"
	holdField      = "hold"
)

func (f *document) step(name string) *step {
	if i, ok := f.index[name]; ok {
		return &f.steps[i]
	}
	return nil
}

func (f *document) param(name string) *param {
	for i := range f.params {
		if f.params[i].name == name {
			return &f.params[i]
		}
	}
	return nil
}

func (s *step) field(name string) *taskField {
	for i := range s.fields {
		if s.fields[i].name == name {
			return &s.fields[i]
		}
	}
	return nil
}

// checkGraph looks whether what steps need is there, and whether they can come to run.
func (r *reader) checkGraph() {
	names := make([]string, len(r.file.steps))
	r.file.index = map[string]int{}
	for i, s := range r.file.steps {
		names[i] = s.name
		r.file.index[s.name] = i
	}
	for _, s := range r.file.steps {
		r.checkNeeds(&s, names)
		r.checkForeach(&s)
		r.checkLines(&s, names)
	}
	if len(r.list) == 0 {
		r.checkCycles()
	}
}

func (r *reader) checkNeeds(s *step, names []string) {
	field := "steps." + s.name + ".needs"
	when := map[string]task.When{}
	for _, n := range s.needs {
		was, twice := when[n.Step]
		switch {
		case r.file.step(n.Step) == nil:
			r.add(n.Line, field, "there is no step %q; %s", n.Step, meant(n.Step, names))
		case twice && was != n.When:
			r.add(n.Line, field, "step %q is needed with when: %s and with when: %s; write the same each time", n.Step, was, n.When)
		}
		when[n.Step] = n.When
	}
}

func (r *reader) checkForeach(s *step) {
	if s.foreach == nil || s.foreach.param == "" || r.file.param(s.foreach.param) != nil {
		return
	}
	known := make([]string, len(r.file.params))
	for i, p := range r.file.params {
		known[i] = p.name
	}
	r.add(s.foreach.line, "steps."+s.name+".foreach", "there is no parameter %q; %s", s.foreach.param, meant(s.foreach.param, known))
}

// checkLines looks whether there is one result for whose lines a step is repeated.
func (r *reader) checkLines(s *step, names []string) {
	if s.foreach == nil || s.foreach.lines == "" {
		return
	}
	field, name := "steps."+s.name+".foreach", s.foreach.lines
	switch of := r.file.step(name); {
	case of == nil:
		r.add(s.foreach.line, field, "there is no step %q; %s", name, meant(name, names))
	case of.foreach != nil:
		r.add(s.foreach.line, field, "step %q has a foreach of its own, so it has many results and not one; "+
			"put a step between that needs it and prints all lines", name)
	}
}

// behind are the steps that one needs, and that for whose lines it is repeated.
func (s *step) behind() []need {
	if s.foreach == nil || s.foreach.lines == "" {
		return s.needs
	}
	return append(slices.Clone(s.needs), need{Step: s.foreach.lines, Line: s.foreach.line})
}

// checkCycles names a cycle, each step of which needs the one before it.
func (r *reader) checkCycles() {
	if _, cycle := r.file.sorted(); cycle != nil {
		first := r.file.step(cycle[0])
		line := first.line
		for _, n := range first.behind() {
			if n.Step == cycle[1] {
				line = n.Line
			}
		}
		r.add(line, "steps."+cycle[0]+".needs", "the steps need one another in a circle: %s; take one of these needs out",
			strings.Join(cycle, " -> "))
	}
}

// sorted returns the steps, each behind all that it needs, else in the order of the file; or else a cycle: a step, one
// that it needs, and so on, and the first one again.
func (f *document) sorted() (steps []*step, cycle []string) {
	const underWay, done = 1, 2
	state := map[string]int{}
	var path []string
	var visit func(s *step) (cycle []string)
	visit = func(s *step) []string {
		switch state[s.name] {
		case underWay:
			return append(slices.Clone(path[slices.Index(path, s.name):]), s.name)
		case done:
			return nil
		}
		path, state[s.name] = append(path, s.name), underWay
		for _, n := range s.behind() {
			if cycle := visit(f.step(n.Step)); cycle != nil {
				return cycle
			}
		}
		path, state[s.name] = path[:len(path)-1], done
		steps = append(steps, s)
		return nil
	}
	for i := range f.steps {
		if cycle := visit(&f.steps[i]); cycle != nil {
			return nil, cycle
		}
	}
	return steps, nil
}

// Error is one thing that is wrong with a plan file.
type Error struct {
	// File is its name as given, Line counts from 1; 0 for what is in no line, such as a value of the command line.
	File string
	Line int
	// Field is where in the file it is, such as steps.load.needs; empty for the file as a whole.
	Field string
	// Err names the value and the remedy.
	Err error
}

// Error implements error: file:line: field: what is wrong.
func (e *Error) Error() string {
	text := e.File
	if e.Line > 0 {
		text = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if e.Field != "" {
		text += ": " + e.Field
	}
	return text + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// mostErrors is how many errors are told; who has more begins with these.
const mostErrors = 20

// Errors is all that is wrong with a plan file, in the order of its lines.
type Errors []*Error

// Error implements error: a line each.
func (e Errors) Error() string {
	lines := make([]string, 0, len(e))
	for _, one := range e[:min(len(e), mostErrors)] {
		lines = append(lines, one.Error())
	}
	if more := len(e) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("%s: and %d more", e[0].File, more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns them all.
func (e Errors) Unwrap() []error {
	list := make([]error, len(e))
	for i, one := range e {
		list[i] = one
	}
	return list
}

type problems struct {
	file string
	list Errors
}

func (p *problems) add(line int, field, format string, args ...any) {
	p.list = append(p.list, &Error{File: p.file, Line: line, Field: field, Err: fmt.Errorf(format, args...)})
}

// err returns all mistakes as one error, nil without any.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	return p.list
}
