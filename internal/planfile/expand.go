package planfile

import (
	"fmt"
	"slices"
)

// Plan is a plan file with its parameters filled in.
type Plan struct {
	Name, OnFailure string
	// Tasks are in an order in which each comes behind all that it needs.
	Tasks []Task
}

// Task is a task of a plan.
type Task struct {
	// Step is the name of its step, Line where that begins.
	Step string
	Line int
	// Item is what a step with foreach repeats it for, and Number its place among the tasks of that step, from 1; 0 in others.
	Item   string
	Number int
	// Fields are those of the task, defaults included, each with its line.
	Fields []Field
	// Needs are the tasks it needs, in the order of its arguments.
	Needs []TaskNeed
	// Args is how its program gets their results: words, files, or empty for the default.
	Args string
}

// Name is what the task is called: the name of its step, with its number if there are several.
func (t *Task) Name() string {
	if t.Number == 0 {
		return t.Step
	}
	return fmt.Sprintf("%s[%d]", t.Step, t.Number)
}

// TaskNeed is a task that another one needs: its place in Plan.Tasks, and with which end.
type TaskNeed struct {
	Task int
	When string
}

// Bounds of what a slip in a file can ask for.
const (
	maxTasks = 100_000
	maxNeeds = 1000 // of a task, as the store has it
	maxEdges = 1_000_000
)

// Expand fills in values of parameters, by their names, and makes the tasks. A parameter whose default is a list takes its
// items separated by commas. The error is an [Errors].
func (f *File) Expand(given map[string]string) (*Plan, error) {
	e := &expansion{problems: &problems{file: f.Path}, file: f, tasks: map[string][]int{}, plan: &Plan{OnFailure: f.OnFailure}}
	if e.params = f.values(given, e.problems); len(e.list) > 0 {
		return nil, e.err()
	}
	var err error
	if e.plan.Name, err = (&scope{params: e.params}).fill(f.Name); err != nil {
		e.add(f.nameLine, "name", "%w", err)
	}
	steps, _ := f.sorted() // there are no cycles: checked
	for _, s := range steps {
		if !e.step(s) {
			break
		}
	}
	if err := e.err(); err != nil {
		return nil, err
	}
	return e.plan, nil
}

type expansion struct {
	*problems

	file   *File
	params map[string]Value
	tasks  map[string][]int // of each step
	plan   *Plan
	edges  int
}

// step adds the tasks of a step; false ends it all.
func (e *expansion) step(s *Step) bool {
	where := "steps." + s.Name
	items, ok := e.items(s, where+".foreach")
	needs := e.needs(s)
	e.edges += len(items) * len(needs)
	switch {
	case !ok:
		return true
	case len(needs) > maxNeeds:
		e.add(s.Line, where+".needs", "these are %d tasks; a task may need %d: put steps between that each take some of them",
			len(needs), maxNeeds)
		return false
	case len(e.plan.Tasks)+len(items) > maxTasks || e.edges > maxEdges:
		e.add(s.Line, where, "with this step the plan has more than %d tasks, or more than %d needs of tasks; make several plans",
			maxTasks, maxEdges)
		return false
	}
	for i, item := range items {
		fields, ok := e.fields(s, &scope{params: e.params, item: item, inStep: s.Foreach != nil})
		if !ok {
			return true // the next item has the same errors
		}
		e.tasks[s.Name] = append(e.tasks[s.Name], len(e.plan.Tasks))
		task := Task{Step: s.Name, Line: s.Line, Item: item, Fields: fields, Needs: needs, Args: s.Args}
		if s.Foreach != nil {
			task.Number = i + 1
		}
		e.plan.Tasks = append(e.plan.Tasks, task)
	}
	return true
}

// items are what a step is repeated for: one empty item without foreach.
func (e *expansion) items(s *Step, field string) ([]string, bool) {
	switch {
	case s.Foreach == nil:
		return []string{""}, true
	case s.Foreach.Param == "":
		return e.filled(s, field)
	}
	name := s.Foreach.Param
	v := e.params[name]
	if v.List == nil && e.file.param(name).Required {
		v.List = items(v.Text)
	}
	switch {
	case v.List == nil:
		e.add(s.Foreach.Line, field, "parameter %q is no list; write [%s] as its default", name, v.Text)
	case len(v.List) == 0:
		e.add(s.Foreach.Line, field, "parameter %q is an empty list; give an item at least", name)
	}
	return v.List, len(v.List) > 0
}

// filled are the items of a list in the file, in which parameters may be named.
func (e *expansion) filled(s *Step, field string) ([]string, bool) {
	v, err := Value{List: s.Foreach.Items}.each((&scope{params: e.params}).fill)
	if err != nil {
		e.add(s.Foreach.Line, field, "%w", err)
	}
	return v.List, err == nil
}

// needs are all tasks of the steps it needs. A step that is needed twice gives its results twice.
func (e *expansion) needs(s *Step) []TaskNeed {
	var needs []TaskNeed
	for _, n := range s.Needs {
		for _, task := range e.tasks[n.Step] {
			needs = append(needs, TaskNeed{Task: task, When: n.When})
		}
	}
	return needs
}

// fields are those of a task, with values filled in.
func (e *expansion) fields(s *Step, in *scope) ([]Field, bool) {
	before := len(e.list)
	fields := make([]Field, 0, len(s.Fields)+len(e.file.Defaults))
	for _, f := range e.file.Defaults {
		if !slices.ContainsFunc(s.Fields, func(own Field) bool { return own.Name == f.Name }) {
			fields = append(fields, e.field(f, "defaults", in))
		}
	}
	for _, f := range s.Fields {
		fields = append(fields, e.field(f, "steps."+s.Name, in))
	}
	return fields, len(e.list) == before
}

func (e *expansion) field(f Field, where string, in *scope) Field {
	v, err := f.Value.each(in.fill)
	if err != nil {
		e.add(f.Line, where+"."+f.Name, "%w", err)
	}
	f.Value = v
	return f
}
