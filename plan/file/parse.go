package file

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// Read reads a plan file and fills in its parameters, whose values are params, by their names; the value of one whose default is a
// list is its items, separated by commas. path is for errors. The error is an [Errors].
func Read(path string, data []byte, params map[string]string) (*Plan, error) {
	from, err := parse(path, data)
	if err != nil {
		return nil, err
	}
	return from.expand(params)
}

// parse checks all that does not depend on values of parameters.
func parse(path string, data []byte) (*document, error) {
	r := &reader{problems: &problems{file: path}, known: knownFields(), file: &document{path: path}}
	if body := read(data, r.problems); body != nil {
		r.top(body)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	r.checkGraph()
	return r.file, r.err()
}

type reader struct {
	*problems

	known []string
	file  *document
}

// knownFields are the fields of a task that may stand in a file, beside those of steps, and upload; refused tells of two others.
func knownFields() (names []string) {
	names = append(names, uploadField)
	for _, f := range task.Fields() {
		if !f.Planned && f.Name != keyField && f.Name != holdField {
			names = append(names, f.Name)
		}
	}
	return names
}

// topFields are the names at the top of a file.
var topFields = []string{"name", "on_failure", paramsField, "defaults", "steps"}

func (r *reader) top(body *node) {
	for _, item := range body.pairs {
		v := item.value
		switch item.key {
		case "name":
			r.file.name, r.file.nameLine = v.single("name", r.problems), item.line
		case "on_failure":
			r.file.onFailure = r.choice(v, "on_failure", "cancel", "hold", "continue")
		case paramsField:
			r.params(v)
		case "defaults":
			r.file.defaults = r.defaults(v)
		case "steps":
			r.steps(v)
		default:
			r.unknown(item.line, "", item.key, topFields)
		}
	}
	if !slices.ContainsFunc(body.pairs, func(item pair) bool { return item.key == "steps" }) {
		r.add(1, "steps", "is missing; write steps, each with a program")
	}
}

// unknown refuses a name and says which one was meant.
func (r *reader) unknown(line int, where, name string, known []string) {
	r.add(line, where, "field %q is unknown; %s", name, meant(name, known))
}

// meant asks for the known name that is nearest, or says them all.
func meant(name string, known []string) string {
	if near := task.Nearest(name, known); near != "" {
		return "did you mean " + strconv.Quote(near) + "?"
	}
	sorted := slices.Sorted(slices.Values(known))
	if len(sorted) == 0 {
		return "the file declares none"
	}
	return "write one of " + strings.Join(sorted, ", ")
}

func (r *reader) choice(v *node, field string, words ...string) string {
	word := v.single(field, r.problems)
	if v.kind == text && !slices.Contains(words, word) {
		r.add(v.line, field, "%q is unknown; %s", word, meant(word, words))
	}
	return word
}

// nameForm is what steps and parameters may be called.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$`)

func (r *reader) name(line int, field, name string) {
	if !nameForm.MatchString(name) {
		r.add(line, field, "%q cannot be a name; write up to 64 letters, digits, _ and -", name)
	}
}

func (r *reader) params(v *node) {
	if v.kind != mapping {
		r.add(v.line, paramsField, "is %s; write names with their values, and nothing behind a name whose value must be given", v.kind)
	}
	for _, item := range v.pairs {
		field := paramsField + "." + item.key
		r.name(item.line, field, item.key)
		p := param{name: item.key, line: item.line, required: item.value.kind == null}
		switch {
		case item.value.kind == mapping:
			r.add(item.line, field, "is a mapping; write a text, a number or a list")
		case !p.required:
			p.value = item.value.value(field, r.problems)
		}
		r.file.params = append(r.file.params, p)
	}
}

func (r *reader) defaults(v *node) []taskField {
	const where = "defaults"
	if v.kind != mapping {
		r.add(v.line, where, "is %s; write fields of tasks with their values", v.kind)
	}
	var fields []taskField
	for _, item := range v.pairs {
		switch {
		case r.refused(where, item):
		case slices.Contains([]string{inputField, argvField, needsField, argsField, foreachField}, item.key):
			r.add(item.line, where, "field %q belongs to a step; write it there", item.key)
		case !slices.Contains(r.known, item.key):
			r.unknown(item.line, where, item.key, r.known)
		default:
			fields = append(fields, r.field(where, item))
		}
	}
	return fields
}

// refused refuses fields that a task has outside of plans only.
func (r *reader) refused(where string, item pair) bool {
	switch item.key {
	case holdField:
		r.add(item.line, where, "field hold is not for tasks of a plan; hold the plan instead, with plan hold ID")
	case keyField:
		r.add(item.line, where, "field key is not for tasks of a plan; name the plan instead, with plan submit --key KEY")
	default:
		return false
	}
	return true
}

func (r *reader) field(where string, item pair) taskField {
	if item.key == paramsField && item.value.kind != text {
		r.add(item.line, where+"."+item.key, `is %s; write the JSON object as a text, such as '{"depth": 3}'`, item.value.kind)
	}
	return taskField{name: item.key, line: item.line, value: item.value.value(where+"."+item.key, r.problems)}
}

func (r *reader) steps(v *node) {
	if v.kind != mapping || len(v.pairs) == 0 {
		r.add(v.line, "steps", "is %s; write the name of each step with its fields", v.kind)
	}
	for _, item := range v.pairs {
		r.step(item)
	}
}

func (r *reader) step(item pair) {
	where := "steps." + item.key
	r.name(item.line, where, item.key)
	if item.value.kind != mapping {
		r.add(item.line, where, "is %s; write its fields, program first", item.value.kind)
		return
	}
	s := step{name: item.key, line: item.line}
	for _, f := range item.value.pairs {
		switch {
		case r.refused(where, f):
		case f.key == needsField:
			s.needs = r.needs(where+".needs", f)
		case f.key == argsField:
			s.args = r.choice(f.value, where+".args", "words", "files")
		case f.key == foreachField:
			s.foreach = r.foreach(where+".foreach", f)
		case slices.Contains(r.known, f.key):
			s.fields = append(s.fields, r.field(where, f))
		default:
			r.unknown(f.line, where, f.key, append([]string{needsField, argsField, foreachField}, r.known...))
		}
	}
	r.whole(&s, where)
	r.file.steps = append(r.file.steps, s)
}

// whole checks fields against one another.
func (r *reader) whole(s *step, where string) {
	runs := slices.ContainsFunc(slices.Concat(r.file.defaults, s.fields), func(f taskField) bool {
		return f.name == programField || f.name == sourceField && strings.HasPrefix(f.value.text, task.CommandPrefix)
	})
	if !runs {
		r.add(s.line, where, "field %q is missing; write which program the step runs, or source: command:NAME", programField)
	}
	if argv := s.field(argvField); argv != nil {
		if s.field(inputField) != nil {
			r.add(argv.line, where, "fields input and argv exclude each other; write one of them")
		}
		if argv.value.list == nil {
			r.add(argv.line, where+".argv", "%q is not a list; write [word, word], or input: for words between blanks", argv.value.text)
		}
	}
}

func (r *reader) needs(field string, item pair) []need {
	all := item.value.list
	switch item.value.kind {
	case text:
		all = []*node{item.value}
	case list:
	default:
		r.add(item.line, field, "is %s; write a list of steps, such as [fetch, {step: check, when: any}]", item.value.kind)
		return nil
	}
	var needs []need
	for _, v := range all {
		needs = append(needs, r.need(field, v))
	}
	return needs
}

func (r *reader) need(field string, v *node) need {
	n := need{Line: v.line, When: task.NeedsSuccess}
	if v.kind == text {
		n.Step = v.text
		return n
	}
	for _, item := range v.pairs {
		switch item.key {
		case "step":
			n.Step = item.value.single(field, r.problems)
		case "when":
			word := r.choice(item.value, field+".when", string(task.NeedsSuccess), string(task.NeedsAny), string(task.NeedsFailure))
			n.When = task.When(word)
		default:
			r.unknown(item.line, field, item.key, []string{"step", "when"})
		}
	}
	if n.Step == "" {
		r.add(v.line, field, "names no step; write its name, or {step: name, when: any}")
	}
	return n
}

func (r *reader) foreach(field string, item pair) *foreach {
	f := &foreach{line: item.line}
	switch v := item.value; {
	case v.kind == list && len(v.list) == 0:
		r.add(item.line, field, "is an empty list; write an item at least")
	case v.kind == list:
		f.items = v.texts(field, r.problems)
	case v.kind == mapping && len(v.pairs) == 1 && v.pairs[0].key == "param":
		f.param = v.pairs[0].value.single(field+".param", r.problems)
	case v.kind == mapping && hasAny(v, linesField):
		r.lines(field, v, f)
	case v.kind == mapping && hasAny(v, "step", "steps", "output"):
		r.add(item.line, field, "%q is unknown; write {lines: name} for the lines of the result of a step", v.pairs[0].key)
	default:
		r.add(item.line, field, "is %s; write [item, item], {param: name} for a parameter that is a list, "+
			"or {lines: name} for the lines of the result of a step", v.kind)
	}
	return f
}

// Names within foreach.
const (
	linesField = "lines"
	mostField  = "most"
)

// lines reads {lines: step, most: 100}.
func (r *reader) lines(field string, v *node, f *foreach) {
	f.most = manager.MaxLines
	for _, item := range v.pairs {
		switch item.key {
		case linesField:
			if f.lines = item.value.single(field+"."+linesField, r.problems); f.lines == "" && item.value.kind == text {
				r.add(item.line, field+"."+linesField, "names no step; write the name of one")
			}
		case mostField:
			word := item.value.single(field+"."+mostField, r.problems)
			n, err := strconv.Atoi(word)
			if err != nil || n < 1 || n > manager.MaxLines {
				r.add(item.line, field+"."+mostField, "%q is not a number of lines; write one from 1 to %d", word, manager.MaxLines)
			}
			f.most = n
		default:
			r.unknown(item.line, field, item.key, []string{linesField, mostField})
		}
	}
}

func hasAny(v *node, keys ...string) bool {
	return slices.ContainsFunc(v.pairs, func(item pair) bool { return slices.Contains(keys, item.key) })
}
