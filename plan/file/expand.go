package file

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/store/growth"
	"github.com/tdf-go/tdf/task"
)

// Plan is a plan file with its parameters filled in.
type Plan struct {
	Name      string `json:"name"`
	OnFailure string `json:"on_failure"`
	// Tasks are those that are known before the plan runs, in an order in which each comes behind all that it needs.
	Tasks []Task `json:"tasks"`
	// Later are the steps that are opened once it runs: those that are repeated for lines, and what needs such a step. Each
	// comes behind all that it needs.
	Later []Later `json:"later,omitempty"`

	path string // of the file, for errors
}

// Later is a step that is opened once the plan runs.
type Later struct {
	// Lines is the step for the lines of whose result it is repeated, and Most how many there may be. Empty if it only needs such a step.
	Lines string
	Most  int
	Needs []Need
	// Tasks are those of the step, without what they need. With Lines it is one, in which growth.Item stands for the line.
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
	Task int       `json:"task"`
	When task.When `json:"when"`
}

// itemText stands for a line where a step that is repeated for lines is written.
const itemText = "${item}"

// MarshalJSON writes the task with the names of the file; its needs are places in
// [Plan.Tasks]. Passwords and tokens of its source are masked.
func (t *Task) MarshalJSON() ([]byte, error) {
	object := t.object()
	object["needs"] = append([]TaskNeed{}, t.Needs...)
	return json.Marshal(object) //nolint:wrapcheck // it cannot fail
}

// object is the task without its needs.
func (t *Task) object() map[string]any {
	object := map[string]any{"step": t.Step, "args": t.Args}
	if t.Item != "" && t.Item != growth.Item {
		object["item"] = t.Item
	}
	for i := range t.Fields {
		f := &t.Fields[i]
		if object[f.Name] = f.JSON(); f.Name == "source" {
			object[f.Name] = clean.Source(f.Value.Text)
		}
	}
	return object
}

// MarshalJSON writes the step with the names of the file; a line is ${item}.
func (l *Later) MarshalJSON() ([]byte, error) {
	object := struct {
		Step  string           `json:"step"`
		Lines string           `json:"lines,omitempty"`
		Most  int              `json:"most,omitempty"`
		Needs []Need           `json:"needs"`
		Tasks []map[string]any `json:"tasks"`
	}{Step: l.Tasks[0].Step, Needs: append([]Need{}, l.Needs...)}
	if l.Lines != "" {
		object.Lines, object.Most = l.Lines, l.Most
	}
	for i := range l.Tasks {
		one := l.Tasks[i].object()
		for _, name := range []string{"input", argvField} {
			if raw, is := one[name].(json.RawMessage); is {
				one[name] = json.RawMessage(strings.ReplaceAll(string(raw), `\u0000`, itemText))
			}
		}
		object.Tasks = append(object.Tasks, one)
	}
	return json.Marshal(object) //nolint:wrapcheck // it cannot fail
}

// Bounds of what a slip in a file can ask for.
const (
	maxTasks = 100_000
	maxNeeds = growth.MaxNeeds
	maxEdges = growth.MaxEdges
)

// Expand fills in values of parameters, by their names, and makes the tasks. A parameter whose default is a list takes its
// items separated by commas. The error is an [Errors].
func (f *File) Expand(given map[string]string) (*Plan, error) {
	e := &expansion{
		problems: &problems{file: f.Path}, file: f, tasks: map[string][]int{}, later: map[string]bool{},
		plan: &Plan{OnFailure: f.OnFailure, Tasks: []Task{}, path: f.Path},
	}
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
	later  map[string]bool  // steps that are opened once the plan runs
	known  int              // tasks of these
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
	case len(e.plan.Tasks)+e.known+len(items) > maxTasks || e.edges > maxEdges:
		e.add(s.Line, where, "with this step the plan has more than %d tasks, or more than %d needs of tasks; make several plans",
			maxTasks, maxEdges)
		return false
	}
	var tasks []Task
	for i, item := range items {
		fields, ok := e.fields(s, &scope{params: e.params, item: item, inStep: s.Foreach != nil})
		if !ok {
			return true // the next item has the same errors
		}
		one := Task{Step: s.Name, Line: s.Line, Item: item, Fields: fields, Needs: needs, Args: s.Args}
		if s.Foreach != nil {
			one.Number = i + 1
		}
		tasks = append(tasks, one)
	}
	e.put(s, tasks)
	return true
}

// put adds the tasks of a step to those that are opened with the plan, or to those that are opened once it runs.
func (e *expansion) put(s *Step, tasks []Task) {
	if !slices.ContainsFunc(s.behind(), func(n Need) bool { return e.later[n.Step] }) && !s.forLines() {
		for i := range tasks {
			e.tasks[s.Name] = append(e.tasks[s.Name], len(e.plan.Tasks)+i)
		}
		e.plan.Tasks = append(e.plan.Tasks, tasks...)
		return
	}
	e.later[s.Name] = true
	e.known += len(tasks)
	for i := range tasks {
		tasks[i].Needs = nil
	}
	l := Later{Needs: s.Needs, Tasks: tasks}
	if s.forLines() {
		l.Lines, l.Most = s.Foreach.Lines, s.Foreach.Most
		l.Tasks[0].Number = 0
	}
	e.plan.Later = append(e.plan.Later, l)
}

// forLines reports whether a step is repeated for lines.
func (s *Step) forLines() bool { return s.Foreach != nil && s.Foreach.Lines != "" }

// items are what a step is repeated for: one empty item without foreach.
func (e *expansion) items(s *Step, field string) ([]string, bool) {
	switch {
	case s.Foreach == nil:
		return []string{""}, true
	case s.forLines():
		return []string{growth.Item}, true
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
		e.add(s.Foreach.Line, field, "parameter %q is not a list; write [%s] as its default", name, v.Text)
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
		for _, place := range e.tasks[n.Step] {
			needs = append(needs, TaskNeed{Task: place, When: n.When})
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
			fields = append(fields, e.field(f, "defaults", in, s.forLines()))
		}
	}
	for _, f := range s.Fields {
		fields = append(fields, e.field(f, "steps."+s.Name, in, s.forLines()))
	}
	return fields, len(e.list) == before
}

// field is a field with values filled in. For lines there may be no other NUL character than that which stands for the line.
func (e *expansion) field(f Field, where string, in *scope, lines bool) Field {
	if lines {
		bare := *in
		bare.item, bare.later = "", f.Name != inputField && f.Name != argvField
		if v, err := f.Value.each(bare.fill); err == nil && strings.Contains(string((&Field{Value: v}).JSON()), `\u0000`) {
			e.add(f.Line, where+"."+f.Name, "has a NUL character; leave it out")
		}
		in = &scope{params: in.params, item: in.item, inStep: true, later: bare.later}
	}
	v, err := f.Value.each(in.fill)
	if err != nil {
		e.add(f.Line, where+"."+f.Name, "%w", err)
	}
	f.Value = v
	return f
}

// values are the parameters with what they are in one use of the file.
func (f *File) values(given map[string]string, p *problems) map[string]Value {
	known := make([]string, len(f.Params))
	values := map[string]Value{}
	for i, param := range f.Params {
		known[i] = param.Name
		text, is := given[param.Name]
		switch {
		case is && param.Default.List != nil:
			values[param.Name] = Value{List: items(text)}
		case is:
			values[param.Name] = Value{Text: text}
		case param.Required:
			p.add(param.Line, "params."+param.Name, "has no default and was not given; add -p %s=VALUE", param.Name)
		default:
			values[param.Name] = param.Default
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			p.add(0, "", "-p %s=%s: there is no such parameter; %s", name, given[name], meant(name, known))
		}
	}
	return values
}

// items splits a list of the command line at commas; it is never nil.
func items(text string) []string {
	if text == "" {
		return []string{}
	}
	return strings.Split(text, ",")
}

// scope is what may be named between ${ and }.
type scope struct {
	params map[string]Value
	item   string
	inStep bool // a step with foreach
	later  bool // the item is a line that is not known yet, and may not stand here
}

// fill puts values in the place of ${item} and ${params.x}; $${ is a ${ that stays.
func (s *scope) fill(text string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		if !found {
			out.WriteString(text)
			return out.String(), nil
		}
		if kept, escaped := strings.CutSuffix(before, "$"); escaped {
			out.WriteString(kept + "${")
			text = rest
			continue
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", fmt.Errorf("${%s has no }; add it, or write $${ for a ${ that stays", rest)
		}
		value, err := s.lookup(strings.TrimSpace(name))
		if err != nil {
			return "", err
		}
		out.WriteString(before + value)
		text = after
	}
}

func (s *scope) lookup(name string) (string, error) {
	if name == "item" {
		if !s.inStep {
			return "", fmt.Errorf("${item} is known in a step with foreach only; add foreach, or write ${params.NAME}")
		}
		if s.later {
			return "", fmt.Errorf("${item} is a line that is known only when the plan runs: it can stand in input and argv")
		}
		return s.item, nil
	}
	param, ok := strings.CutPrefix(name, "params.")
	if !ok {
		return "", fmt.Errorf("${%s} is unknown; write ${item}, ${params.NAME}, or $${ for a ${ that stays", name)
	}
	v, ok := s.params[param]
	switch {
	case !ok:
		return "", fmt.Errorf("${%s}: there is no parameter %q; %s", name, param, meant(param, slices.Collect(maps.Keys(s.params))))
	case v.List != nil:
		return "", fmt.Errorf("${%s} is a list; write foreach: {param: %s} and ${item}", name, param)
	}
	return v.Text, nil
}
