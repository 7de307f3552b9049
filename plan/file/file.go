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

// File is a plan file that was read and checked, but for what depends on values of its parameters.
type File struct {
	// Path is where it was read from, for errors.
	Path string
	// Name is that of the plan, OnFailure what it does when a task fails: cancel, hold or continue; empty for the default.
	// Parameters in the name are not filled in yet.
	Name, OnFailure string
	nameLine        int
	// Params are in the order of the file, and so are Steps.
	Params   []Param
	Defaults []Field
	Steps    []Step
	index    map[string]int // of steps, by name
}

// Param is a parameter of a plan.
type Param struct {
	Name string
	Line int
	// Default is its value if none is given. Required says that there is none.
	Default  Value
	Required bool
}

// Step is a step of a plan: a task, or one for each item of a list.
type Step struct {
	Name string
	Line int
	// Fields are those of its task, without those of the defaults.
	Fields []Field
	Needs  []Need
	// Args says how its program gets the results of what it needs: words, files, or empty for the default.
	Args    string
	Foreach *Foreach
}

// Field is a field of a task as it stands in the file.
type Field struct {
	Name  string
	Line  int
	Value Value
}

// Need is a step that another one needs.
type Need struct {
	Step string    `json:"step"`
	Line int       `json:"-"`
	When task.When `json:"when"`
}

// Foreach is what a step is repeated for: the items, or those of a parameter, or the lines of the result of a step.
type Foreach struct {
	Line  int
	Items []string
	Param string
	// Lines is the step, empty for none; Most is how many lines there may be.
	Lines string
	Most  int
}

// Names of fields of a step which are not those of a task.
const (
	needsField   = "needs"
	argsField    = "args"
	foreachField = "foreach"
)

// Names of fields of a task that this package knows.
const (
	programField = "program"
	inputField   = "input"
	argvField    = "argv"
)

func (f *File) step(name string) *Step {
	if i, ok := f.index[name]; ok {
		return &f.Steps[i]
	}
	return nil
}

func (f *File) param(name string) *Param {
	for i := range f.Params {
		if f.Params[i].Name == name {
			return &f.Params[i]
		}
	}
	return nil
}

func (s *Step) field(name string) *Field {
	for i := range s.Fields {
		if s.Fields[i].Name == name {
			return &s.Fields[i]
		}
	}
	return nil
}

// checkGraph looks whether what steps need is there, and whether they can come to run.
func (r *reader) checkGraph() {
	names := make([]string, len(r.file.Steps))
	r.file.index = map[string]int{}
	for i, s := range r.file.Steps {
		names[i] = s.Name
		r.file.index[s.Name] = i
	}
	for _, s := range r.file.Steps {
		r.checkNeeds(&s, names)
		r.checkForeach(&s)
		r.checkLines(&s, names)
	}
	if len(r.list) == 0 {
		r.checkCycles()
	}
}

func (r *reader) checkNeeds(s *Step, names []string) {
	field := "steps." + s.Name + ".needs"
	when := map[string]task.When{}
	for _, n := range s.Needs {
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

func (r *reader) checkForeach(s *Step) {
	if s.Foreach == nil || s.Foreach.Param == "" || r.file.param(s.Foreach.Param) != nil {
		return
	}
	known := make([]string, len(r.file.Params))
	for i, p := range r.file.Params {
		known[i] = p.Name
	}
	r.add(s.Foreach.Line, "steps."+s.Name+".foreach", "there is no parameter %q; %s", s.Foreach.Param, meant(s.Foreach.Param, known))
}

// checkLines looks whether there is one result for whose lines a step is repeated.
func (r *reader) checkLines(s *Step, names []string) {
	if s.Foreach == nil || s.Foreach.Lines == "" {
		return
	}
	field, name := "steps."+s.Name+".foreach", s.Foreach.Lines
	switch of := r.file.step(name); {
	case of == nil:
		r.add(s.Foreach.Line, field, "there is no step %q; %s", name, meant(name, names))
	case of.Foreach != nil:
		r.add(s.Foreach.Line, field, "step %q has a foreach of its own, so it has many results and not one; "+
			"put a step between that needs it and prints all lines", name)
	}
}

// behind are the steps that one needs, and that for whose lines it is repeated.
func (s *Step) behind() []Need {
	if s.Foreach == nil || s.Foreach.Lines == "" {
		return s.Needs
	}
	return append(slices.Clone(s.Needs), Need{Step: s.Foreach.Lines, Line: s.Foreach.Line})
}

// checkCycles names a cycle, each step of which needs the one before it.
func (r *reader) checkCycles() {
	if _, cycle := r.file.sorted(); cycle != nil {
		first := r.file.step(cycle[0])
		line := first.Line
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
func (f *File) sorted() (steps []*Step, cycle []string) {
	const underWay, done = 1, 2
	state := map[string]int{}
	var path []string
	var visit func(s *Step) (cycle []string)
	visit = func(s *Step) []string {
		switch state[s.Name] {
		case underWay:
			return append(slices.Clone(path[slices.Index(path, s.Name):]), s.Name)
		case done:
			return nil
		}
		path, state[s.Name] = append(path, s.Name), underWay
		for _, n := range s.behind() {
			if cycle := visit(f.step(n.Step)); cycle != nil {
				return cycle
			}
		}
		path, state[s.Name] = path[:len(path)-1], done
		steps = append(steps, s)
		return nil
	}
	for i := range f.Steps {
		if cycle := visit(&f.Steps[i]); cycle != nil {
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

// ExitCode is that of wrong usage.
func (Errors) ExitCode() int { return 2 }

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
