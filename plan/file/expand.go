package file

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/store/growth"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// Plan is a plan file with its parameters filled in.
type Plan struct {
	Name string
	// OnFailure is what it does when a task fails: cancel, hold or continue; empty for the default.
	OnFailure string

	from *document
	// tasks are those that are known before the plan runs, in an order in which each comes behind all that it needs.
	tasks []planTask
	// uploaded has the hashes of what TakeAlong has taken along, by the names in the file.
	uploaded map[string]string
	// later are the steps that are opened once it runs: those that are repeated for lines, and what needs such a step. Each
	// comes behind all that it needs.
	later []laterStep
}

// all are the tasks of the plan, those of later steps too.
func (p *Plan) all() []planTask {
	all := slices.Clone(p.tasks)
	for i := range p.later {
		all = append(all, p.later[i].tasks...)
	}
	return all
}

// MarshalJSON writes the plan with the names of the file. What a task needs are places among its tasks; passwords and tokens of
// sources, and the values of variables, are masked.
func (p *Plan) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // as the caller has it
	err := enc.Encode(struct {
		Name      string      `json:"name"`
		OnFailure string      `json:"on_failure"`
		Tasks     []planTask  `json:"tasks"`
		Later     []laterStep `json:"later,omitempty"`
	}{p.Name, p.OnFailure, p.tasks, p.later})
	return out.Bytes(), err
}

// String is for people: "3 steps, 5 tasks", "3 steps, 2 tasks and one for each line of list".
func (p *Plan) String() string {
	tasks, lines := len(p.tasks), ""
	for i := range p.later {
		l := &p.later[i]
		switch {
		case l.lines == "":
			tasks += len(l.tasks)
		case lines == "":
			lines = " and one for each line of " + l.lines
		default:
			lines += " and of " + l.lines
		}
	}
	return fmt.Sprintf("%d steps, %d tasks", len(p.from.steps), tasks) + lines
}

// laterStep is a step that is opened once the plan runs.
type laterStep struct {
	// lines is the step for the lines of whose result it is repeated, and most how many there may be. Empty if it only needs such a step.
	lines string
	most  int
	needs []need
	// tasks are those of the step, without what they need. With lines it is one, in which manager.LineItem stands for the line.
	tasks []planTask
}

// planTask is a task of a plan.
type planTask struct {
	// step is the name of its step, line where that begins.
	step string
	line int
	// item is what a step with foreach repeats it for, and number its place among the tasks of that step, from 1; 0 in others.
	item   string
	number int
	// fields are those of the task, defaults included, each with its line.
	fields []taskField
	// needs are the tasks it needs, in the order of its arguments.
	needs []taskNeed
	// args is how its program gets their results: words, files, or empty for the default.
	args string
}

// name is what the task is called: the name of its step, with its number if there are several.
func (t *planTask) name() string {
	if t.number == 0 {
		return t.step
	}
	return fmt.Sprintf("%s[%d]", t.step, t.number)
}

// taskNeed is a task that another one needs: its place among the tasks of the plan, and with which end.
type taskNeed struct {
	Task int       `json:"task"`
	When task.When `json:"when"`
}

// itemText stands for a line where a step that is repeated for lines is written.
const itemText = "${item}"

// MarshalJSON implements [json.Marshaler], as for the plan.
func (t *planTask) MarshalJSON() ([]byte, error) {
	object := t.object()
	object["needs"] = append([]taskNeed{}, t.needs...)
	return json.Marshal(object) //nolint:wrapcheck // it cannot fail
}

// object is the task without its needs.
func (t *planTask) object() map[string]any {
	object := map[string]any{"step": t.step, "args": t.args}
	if t.item != "" && t.item != manager.LineItem {
		object["item"] = t.item
	}
	for i := range t.fields {
		f := &t.fields[i]
		object[f.name] = f.shown()
	}
	return object
}

// MarshalJSON implements [json.Marshaler], as for the plan; a line is ${item}.
func (l *laterStep) MarshalJSON() ([]byte, error) {
	object := struct {
		Step  string           `json:"step"`
		Lines string           `json:"lines,omitempty"`
		Most  int              `json:"most,omitempty"`
		Needs []need           `json:"needs"`
		Tasks []map[string]any `json:"tasks"`
	}{Step: l.tasks[0].step, Needs: append([]need{}, l.needs...)}
	if l.lines != "" {
		object.Lines, object.Most = l.lines, l.most
	}
	for i := range l.tasks {
		one := l.tasks[i].object()
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
	// maxText is how many bytes all fields of all tasks may have: a step may be repeated many times.
	maxText = 256 << 20
)

// expand fills in values of parameters, by their names, and makes the tasks.
func (f *document) expand(given map[string]string) (*Plan, error) {
	e := &expansion{
		problems: &problems{file: f.path}, file: f, tasks: map[string][]int{}, later: map[string]bool{},
		plan: &Plan{OnFailure: f.onFailure, tasks: []planTask{}, from: f},
	}
	if e.params = f.values(given, e.problems); len(e.list) > 0 {
		return nil, e.err()
	}
	var err error
	if e.plan.Name, err = (&scope{params: e.params}).fill(f.name); err != nil {
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

	file   *document
	params map[string]value
	tasks  map[string][]int // of each step
	later  map[string]bool  // steps that are opened once the plan runs
	known  int              // tasks of these
	plan   *Plan
	edges  int
	text   int
}

// step adds the tasks of a step; false ends it all.
func (e *expansion) step(s *step) bool {
	where := "steps." + s.name
	items, ok := e.items(s, where+".foreach")
	needs := e.needs(s)
	e.edges += len(items) * len(needs)
	switch {
	case !ok:
		return true
	case len(needs) > maxNeeds:
		e.add(s.line, where+".needs", "these are %d tasks; a task may need %d: put steps between that each take some of them",
			len(needs), maxNeeds)
		return false
	case len(e.plan.tasks)+e.known+len(items) > maxTasks || e.edges > maxEdges:
		e.add(s.line, where, "with this step the plan has more than %d tasks, or more than %d needs of tasks; make several plans",
			maxTasks, maxEdges)
		return false
	}
	var tasks []planTask
	for i, item := range items {
		fields, ok := e.fields(s, &scope{params: e.params, item: item, inStep: s.foreach != nil})
		if !ok {
			return true // the next item has the same errors
		}
		if e.text += textOf(fields); e.text > maxText {
			e.add(s.line, where, "with this step the tasks of the plan have more than %d bytes in their fields; make several plans", maxText)
			return false
		}
		one := planTask{step: s.name, line: s.line, item: item, fields: fields, needs: needs, args: s.args}
		if s.foreach != nil {
			one.number = i + 1
		}
		tasks = append(tasks, one)
	}
	e.put(s, tasks)
	return true
}

// textOf is how many bytes fields have.
func textOf(fields []taskField) (n int) {
	for i := range fields {
		n += fields[i].value.size()
	}
	return n
}

// put adds the tasks of a step to those that are opened with the plan, or to those that are opened once it runs.
func (e *expansion) put(s *step, tasks []planTask) {
	if !slices.ContainsFunc(s.behind(), func(n need) bool { return e.later[n.Step] }) && !s.forLines() {
		for i := range tasks {
			e.tasks[s.name] = append(e.tasks[s.name], len(e.plan.tasks)+i)
		}
		e.plan.tasks = append(e.plan.tasks, tasks...)
		return
	}
	e.later[s.name] = true
	e.known += len(tasks)
	for i := range tasks {
		tasks[i].needs = nil
	}
	l := laterStep{needs: s.needs, tasks: tasks}
	if s.forLines() {
		l.lines, l.most = s.foreach.lines, s.foreach.most
		l.tasks[0].number = 0
	}
	e.plan.later = append(e.plan.later, l)
}

// forLines reports whether a step is repeated for lines.
func (s *step) forLines() bool { return s.foreach != nil && s.foreach.lines != "" }

// items are what a step is repeated for: one empty item without foreach.
func (e *expansion) items(s *step, field string) ([]string, bool) {
	switch {
	case s.foreach == nil:
		return []string{""}, true
	case s.forLines():
		return []string{manager.LineItem}, true
	case s.foreach.param == "":
		return e.filled(s, field)
	}
	name := s.foreach.param
	v := e.params[name]
	if v.list == nil && e.file.param(name).required {
		v.list = items(v.text)
	}
	switch {
	case v.list == nil:
		e.add(s.foreach.line, field, "parameter %q is not a list; write [%s] as its default", name, v.text)
	case len(v.list) == 0:
		e.add(s.foreach.line, field, "parameter %q is an empty list; give an item at least", name)
	}
	return v.list, len(v.list) > 0
}

// filled are the items of a list in the file, in which parameters may be named.
func (e *expansion) filled(s *step, field string) ([]string, bool) {
	v, err := value{list: s.foreach.items}.each((&scope{params: e.params}).fill)
	if err != nil {
		e.add(s.foreach.line, field, "%w", err)
	}
	return v.list, err == nil
}

// needs are all tasks of the steps it needs. A step that is needed twice gives its results twice.
func (e *expansion) needs(s *step) []taskNeed {
	var needs []taskNeed
	for _, n := range s.needs {
		for _, place := range e.tasks[n.Step] {
			needs = append(needs, taskNeed{Task: place, When: n.When})
		}
	}
	return needs
}

// fields are those of a task, with values filled in.
func (e *expansion) fields(s *step, in *scope) ([]taskField, bool) {
	before := len(e.list)
	fields := make([]taskField, 0, len(s.fields)+len(e.file.defaults))
	for _, f := range e.file.defaults {
		if !slices.ContainsFunc(s.fields, func(own taskField) bool { return own.name == f.name }) {
			fields = append(fields, e.field(f, "defaults", in, s.forLines()))
		}
	}
	for _, f := range s.fields {
		fields = append(fields, e.field(f, "steps."+s.name, in, s.forLines()))
	}
	return fields, len(e.list) == before
}

// field is a field with values filled in. For lines there may be no other NUL character than that which stands for the line.
func (e *expansion) field(f taskField, where string, in *scope, lines bool) taskField {
	if lines {
		bare := *in
		bare.item, bare.later = "", f.name != inputField && f.name != argvField
		if v, err := f.value.each(bare.fill); err == nil && strings.Contains(string((&taskField{value: v}).json()), `\u0000`) {
			e.add(f.line, where+"."+f.name, "has a NUL character; leave it out")
		}
		in = &scope{params: in.params, item: in.item, inStep: true, later: bare.later}
	}
	v, err := f.value.each(in.fill)
	if err != nil {
		e.add(f.line, where+"."+f.name, "%w", err)
	}
	f.value = v
	return f
}

// values are the parameters with what they are in one use of the file.
func (f *document) values(given map[string]string, p *problems) map[string]value {
	known := make([]string, len(f.params))
	values := map[string]value{}
	for i, param := range f.params {
		known[i] = param.name
		text, is := given[param.name]
		switch {
		case is && param.value.list != nil:
			values[param.name] = value{list: items(text)}
		case is:
			values[param.name] = value{text: text}
		case param.required:
			p.add(param.line, "params."+param.name, "has no default and was not given; give it as a parameter, %s=VALUE", param.name)
		default:
			values[param.name] = param.value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			p.add(0, "", "unknown parameter %s=%s; %s", name, given[name], meant(name, known))
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
	params map[string]value
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
	case v.list != nil:
		return "", fmt.Errorf("${%s} is a list; write foreach: {param: %s} and ${item}", name, param)
	}
	return v.text, nil
}
