package file

import (
	"slices"
	"strconv"

	"github.com/tdf-go/tdf/internal/store/growth"
)

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
	s := Step{Name: item.key, Line: item.line}
	for _, f := range item.value.pairs {
		switch {
		case r.refused(where, f):
		case f.key == needsField:
			s.Needs = r.needs(where+".needs", f)
		case f.key == argsField:
			s.Args = r.choice(f.value, where+".args", "words", "files")
		case f.key == foreachField:
			s.Foreach = r.foreach(where+".foreach", f)
		case slices.Contains(r.known, f.key):
			s.Fields = append(s.Fields, r.field(where, f))
		default:
			r.unknown(f.line, where, f.key, append([]string{needsField, argsField, foreachField}, r.known...))
		}
	}
	r.whole(&s, where)
	r.file.Steps = append(r.file.Steps, s)
}

// whole checks fields against one another.
func (r *reader) whole(s *Step, where string) {
	inDefaults := slices.ContainsFunc(r.file.Defaults, func(f Field) bool { return f.Name == programField })
	if s.field(programField) == nil && !inDefaults {
		r.add(s.Line, where, "field %q is missing; write which program the step runs", programField)
	}
	if argv := s.field(argvField); argv != nil {
		if s.field(inputField) != nil {
			r.add(argv.Line, where, "fields input and argv exclude each other; write one of them")
		}
		if argv.Value.List == nil {
			r.add(argv.Line, where+".argv", "%q is no list; write [word, word], or input: for words between blanks", argv.Value.Text)
		}
	}
}

func (r *reader) needs(field string, item pair) []Need {
	all := item.value.list
	switch item.value.kind {
	case text:
		all = []*node{item.value}
	case list:
	default:
		r.add(item.line, field, "is %s; write a list of steps, such as [fetch, {step: check, when: any}]", item.value.kind)
		return nil
	}
	var needs []Need
	for _, v := range all {
		needs = append(needs, r.need(field, v))
	}
	return needs
}

func (r *reader) need(field string, v *node) Need {
	n := Need{Line: v.line, When: Success}
	if v.kind == text {
		n.Step = v.text
		return n
	}
	for _, item := range v.pairs {
		switch item.key {
		case "step":
			n.Step = item.value.single(field, r.problems)
		case "when":
			n.When = r.choice(item.value, field+".when", Success, Any, Failure)
		default:
			r.unknown(item.line, field, item.key, []string{"step", "when"})
		}
	}
	if n.Step == "" {
		r.add(v.line, field, "names no step; write its name, or {step: name, when: any}")
	}
	return n
}

func (r *reader) foreach(field string, item pair) *Foreach {
	f := &Foreach{Line: item.line}
	switch v := item.value; {
	case v.kind == list && len(v.list) == 0:
		r.add(item.line, field, "is an empty list; write an item at least")
	case v.kind == list:
		f.Items = v.texts(field, r.problems)
	case v.kind == mapping && len(v.pairs) == 1 && v.pairs[0].key == "param":
		f.Param = v.pairs[0].value.single(field+".param", r.problems)
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
func (r *reader) lines(field string, v *node, f *Foreach) {
	f.Most = growth.MaxLines
	for _, item := range v.pairs {
		switch item.key {
		case linesField:
			if f.Lines = item.value.single(field+"."+linesField, r.problems); f.Lines == "" && item.value.kind == text {
				r.add(item.line, field+"."+linesField, "names no step; write the name of one")
			}
		case mostField:
			word := item.value.single(field+"."+mostField, r.problems)
			n, err := strconv.Atoi(word)
			if err != nil || n < 1 || n > growth.MaxLines {
				r.add(item.line, field+"."+mostField, "%q is no number of lines; write one from 1 to %d", word, growth.MaxLines)
			}
			f.Most = n
		default:
			r.unknown(item.line, field, item.key, []string{linesField, mostField})
		}
	}
}

func hasAny(v *node, keys ...string) bool {
	return slices.ContainsFunc(v.pairs, func(item pair) bool { return slices.Contains(keys, item.key) })
}
