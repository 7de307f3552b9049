// Package growth opens those steps of a plan that are known only once it runs: a step that is repeated for the lines of a
// result, and what needs such a step. The steps are kept in Redis as templates from the submission on
// (store.KeepGrowth), so that any server can open them when their time comes, whoever has died meanwhile.
package growth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/store"
)

// Bounds of what is opened for lines.
const (
	// MaxLines is how many lines a step may be repeated for.
	MaxLines = 10_000
	// MaxNeeds is how many tasks one may need, and MaxEdges how many needs the tasks of a step have in all.
	MaxNeeds = store.MaxNeeds
	MaxEdges = 1_000_000
)

// Item stands in Input and Argv of a template where the line comes: no text of a task has a NUL character.
const Item = "\x00"

// ErrTemplate means that the steps of a plan cannot be read.
var ErrTemplate = errors.New("the steps to be opened later cannot be read")

// Template is the steps of a plan that are opened later.
type Template struct {
	// Known are the steps that those need and that were opened with the plan: the ids of their tasks, in order.
	Known map[string][]int64 `json:"known"`
	// Steps come behind all that they need.
	Steps []Step `json:"steps"`
}

// Step is a step that is opened later.
type Step struct {
	Name string `json:"name"`
	// Lines is the step for the lines of whose result it is repeated, a step of one task; empty if it is only opened later because of what
	// it needs. Most is how many lines there may be.
	Lines string `json:"lines,omitempty"`
	Most  int    `json:"most,omitempty"`
	// Needs are the steps that it needs, in the order of the arguments.
	Needs []Need `json:"needs,omitempty"`
	// Tasks are those to open, without needs; with Lines it is one, in which Item stands for the line.
	Tasks []Spec `json:"tasks"`
}

// Need is a step that another one needs.
type Need struct {
	Step string     `json:"step"`
	On   store.When `json:"on,omitempty"`
}

// Spec is a task of a template. Its text leaves out what is empty.
type Spec store.Spec

// MarshalJSON implements json.Marshaler.
func (s Spec) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(store.Spec(s)) //nolint:musttag // its own names are those of the template
	if err != nil {
		return nil, fmt.Errorf("task: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("task: %w", err)
	}
	for name, value := range fields {
		switch string(value) {
		case `""`, "0", "null", "false":
			delete(fields, name)
		}
	}
	return json.Marshal(fields) //nolint:wrapcheck // it cannot fail
}

// Text is the template as it is kept.
func (t *Template) Text() (string, error) {
	raw, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("steps: %w", err)
	}
	return string(raw), nil
}

// Parse reads what Text wrote. The error matches [ErrTemplate]: a field that is not known may be one of a newer release, and
// is not left out silently.
func Parse(text string) (*Template, error) {
	t := &Template{}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(t); err != nil { //nolint:musttag // as above
		return nil, fmt.Errorf("%w: %w", ErrTemplate, err)
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		if len(s.Tasks) == 0 || s.Lines != "" && len(s.Tasks) != 1 {
			return nil, fmt.Errorf("%w: step %s has %d tasks", ErrTemplate, s.Name, len(s.Tasks))
		}
	}
	return t, nil
}

// Lines are the lines of a result. An empty result has none.
func Lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// task is one task of a step, for a line of those that it is repeated for.
func (s *Step) task(i int, lines []string) store.Spec {
	if s.Lines == "" {
		return store.Spec(s.Tasks[i])
	}
	spec := store.Spec(s.Tasks[0])
	spec.Input = strings.ReplaceAll(spec.Input, Item, lines[i])
	if spec.Argv != nil {
		argv := make([]string, len(spec.Argv))
		for k, word := range spec.Argv {
			argv[k] = strings.ReplaceAll(word, Item, lines[i])
		}
		spec.Argv = argv
	}
	spec.Step = fmt.Sprintf("%s[%d]", s.Name, i+1)
	return spec
}

// Named are the steps that those of the template need, or are for the lines of.
func (t *Template) Named() []string {
	var names []string
	for i := range t.Steps {
		if t.Steps[i].Lines != "" {
			names = append(names, t.Steps[i].Lines)
		}
		for _, n := range t.Steps[i].Needs {
			names = append(names, n.Step)
		}
	}
	return names
}

// KnownSources are the tasks for whose lines steps are, among those that were opened with the plan.
func (t *Template) KnownSources() []int64 {
	var ids []int64
	for i := range t.Steps {
		if tasks := t.Known[t.Steps[i].Lines]; len(tasks) == 1 && !slices.Contains(ids, tasks[0]) {
			ids = append(ids, tasks[0])
		}
	}
	return ids
}
