package planfile

import "slices"

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
	case v.kind == mapping && hasAny(v, "step", "steps", "lines", "output"):
		r.add(item.line, field, "the output of a step cannot be repeated over: the tasks of a plan file are known before it runs; "+
			"write the items as a list or as {param: name}, or let the program of a step split its own work")
	default:
		r.add(item.line, field, "is %s; write [item, item], or {param: name} for a parameter that is a list; "+
			"the output of a step cannot be repeated over", v.kind)
	}
	return f
}

func hasAny(v *node, keys ...string) bool {
	return slices.ContainsFunc(v.pairs, func(item pair) bool { return slices.Contains(keys, item.key) })
}
