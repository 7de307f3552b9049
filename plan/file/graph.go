package file

import (
	"slices"
	"strings"
)

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
	when := map[string]string{}
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
	w := walk{file: f, done: map[string]bool{}, under: map[string]bool{}}
	for i := range f.Steps {
		if cycle := w.visit(&f.Steps[i]); cycle != nil {
			return nil, cycle
		}
	}
	return w.steps, nil
}

// walk is a search in depth. Its path is the steps under way.
type walk struct {
	file        *File
	done, under map[string]bool
	path        []string
	steps       []*Step
}

func (w *walk) visit(s *Step) (cycle []string) {
	if w.done[s.Name] {
		return nil
	}
	if w.under[s.Name] {
		return append(slices.Clone(w.path[slices.Index(w.path, s.Name):]), s.Name)
	}
	w.path, w.under[s.Name] = append(w.path, s.Name), true
	for _, n := range s.behind() {
		if cycle := w.visit(w.file.step(n.Step)); cycle != nil {
			return cycle
		}
	}
	w.path = w.path[:len(w.path)-1]
	w.done[s.Name], w.under[s.Name] = true, false
	w.steps = append(w.steps, s)
	return nil
}
