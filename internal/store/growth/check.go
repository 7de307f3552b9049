package growth

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tdf-go/tdf/internal/store"
)

// trouble is why a step cannot be opened, however long one waits.
type trouble string

// Error implements error.
func (t trouble) Error() string { return string(t) }

func troublef(format string, args ...any) error { return trouble(fmt.Sprintf(format, args...)) }

// lines are those that a step is repeated for; the error is a trouble. All that can be wrong is looked at before the first task is opened.
func (v *View) lines(i int, result store.Result) ([]string, error) {
	s, lines := &v.Steps[i], Lines(result.Text)
	what := fmt.Sprintf("step %s: the result of task %d", s.Name, result.Task)
	most := s.Most
	if most <= 0 || most > MaxLines {
		most = MaxLines
	}
	switch {
	case result.Cut:
		return nil, troublef("%s was cut at output_limit: raise the limit, and retry that task", what)
	case len(lines) > most:
		return nil, troublef("%s has %d lines, and may have %d", what, len(lines), most)
	}
	for k, line := range lines {
		if strings.Contains(line, Item) || !utf8.ValidString(line) {
			return nil, troublef("%s is no text in line %d: want UTF-8 without NUL characters", what, k+1)
		}
	}
	return lines, v.room(i, len(lines))
}

// room looks whether a step may have so many tasks, for itself and for those that need it.
func (v *View) room(i, tasks int) error {
	s := &v.Steps[i]
	if n := v.needs(s, s.Name, 0); n > MaxNeeds || n*tasks > MaxEdges {
		return troublef("step %s: each of %d tasks would need %d; a task may need %d, and those of a step %d in all",
			s.Name, tasks, n, MaxNeeds, MaxEdges)
	}
	for k := i + 1; k < len(v.Steps); k++ {
		if n := v.needs(&v.Steps[k], s.Name, tasks); n > MaxNeeds {
			return troublef("step %s would need %d tasks with the %d of step %s; a task may need %d: put steps between that each take some of them",
				v.Steps[k].Name, n, tasks, s.Name, MaxNeeds)
		}
	}
	return nil
}

// needs is how many tasks each task of a step needs, as far as that is known, if the step of that name has so many.
func (v *View) needs(s *Step, name string, tasks int) (n int) {
	for _, need := range s.Needs {
		switch st := v.known[need.Step]; {
		case need.Step == name:
			n += tasks
		case st != nil:
			n += max(st.Of, len(st.Tasks))
		}
	}
	return n
}
