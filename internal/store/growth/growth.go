// Package growth opens the steps of a plan that depend on its results: steps repeated for the lines of a
// result, and steps that need those. The submission stores them in Redis as templates
// ([plans.Plans.KeepGrowth]), so that any server can open them later, even if the submitter is gone.
package growth

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Bounds of what is opened for lines.
const (
	// MaxLines is how many lines a step may be repeated for.
	MaxLines = 10_000
	// MaxNeeds is how many tasks one may need, and MaxEdges how many needs the tasks of a step have in all.
	MaxNeeds = task.MaxNeeds
	MaxEdges = 1_000_000
)

// Item stands in Input and Argv of a template where the line comes: no text of a task has a NUL character.
const Item = "\x00"

// Sample is a template with some line in place of Item, which can be checked as a task is.
func Sample(template task.Spec) task.Spec {
	return template.WithWords(func(word string) string { return strings.ReplaceAll(word, Item, "line") })
}

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
	Needs []task.StepNeed `json:"needs,omitempty"`
	// Tasks are those to open, without needs; with Lines it is one, in which Item stands for the line.
	Tasks []task.Definition `json:"tasks"`
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
	if err := d.Decode(t); err != nil {
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
func (s *Step) task(i int, lines []string) (task.Definition, error) {
	if s.Lines == "" {
		return s.Tasks[i], nil
	}
	d, err := s.Tasks[0].Map(func(text string) string { return strings.ReplaceAll(text, Item, lines[i]) })
	if err == nil {
		err = d.Set("step", fmt.Sprintf("%s[%d]", s.Name, i+1))
	}
	return d, err
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

// Fate says whether a step can be opened.
type Fate string

// The fates of a step.
const (
	Waits   Fate = "waits"   // for a result, or for another step
	Due     Fate = "due"     // it can be opened
	Opened  Fate = "opened"  // all of it was
	Skipped Fate = "skipped" // it is not to run, which is no failure
	Doomed  Fate = "doomed"  // it never runs, unless what it hangs on is retried
)

// Status is how a step is.
type Status struct {
	Fate Fate
	// Cause is the task that a step waits for or hangs on, 0 for none; On is the step it waits for.
	Cause int64
	On    string
	// Tasks are those that were opened, in order.
	Tasks []int64
	// Of is how many tasks it has, if that is known; else 0.
	Of int
	// Source is the task whose lines it is for, and Begun says that tasks of it were opened for these.
	Source int64
	Begun  bool
}

// View is a plan with its steps, as they were at one moment.
type View struct {
	*Template

	Plan *plans.Growth
	// Status is that of each step of the template.
	Status []Status
	// Results are those of the tasks whose lines steps are for, by the ids in the template.
	Results map[int64]plans.Source

	known map[string]*Status
}

// Look determines the fate of each step. results are those of the tasks that [Template.Sources] names.
func Look(t *Template, plan *plans.Growth, results map[int64]plans.Source) *View {
	v := &View{Template: t, Plan: plan, Results: results, Status: make([]Status, len(t.Steps)), known: map[string]*Status{}}
	for name, ids := range t.Known {
		v.known[name] = &Status{Fate: Opened, Tasks: ids, Of: len(ids)}
	}
	for i := range t.Steps {
		v.Status[i] = v.status(i)
		v.known[t.Steps[i].Name] = &v.Status[i]
	}
	return v
}

// Sources are the tasks whose lines steps wait for that were not begun yet.
func (t *Template) Sources(plan *plans.Growth) []int64 {
	var ids []int64
	for i := range t.Steps {
		s := &t.Steps[i]
		if _, begun := plan.Steps[i]; s.Lines == "" || begun {
			continue
		}
		tasks := t.Known[s.Lines]
		for k := range t.Steps[:i] {
			if t.Steps[k].Name == s.Lines {
				tasks = plan.Steps[k].Tasks
			}
		}
		if len(tasks) == 1 {
			ids = append(ids, tasks[0])
		}
	}
	return ids
}

func (v *View) status(i int) Status {
	s, is := &v.Steps[i], v.Plan.Steps[i]
	st := Status{Tasks: is.Tasks, Of: is.Of, Source: is.Source, Begun: len(is.Tasks) > 0}
	if s.Lines == "" {
		st.Of = len(s.Tasks)
	}
	switch {
	case is.Skipped:
		st.Fate = Skipped
	case is.Opened:
		st.Fate = Opened
	case st.Begun:
		st.Fate = Due
	default:
		st.Fate, st.Cause, st.On = v.fate(s)
		if s.Lines != "" && st.Fate == Due {
			st.Source = v.Results[v.known[s.Lines].Tasks[0]].Task
		}
	}
	return st
}

// gravity orders fates: what never runs need not wait.
var gravity = map[Fate]int{Due: 0, Waits: 1, Skipped: 2, Doomed: 3}

// fates are what verdicts on what a step needs come to.
var fates = map[task.Verdict]Fate{
	task.VerdictWait: Waits, task.VerdictMet: Due, task.VerdictSkip: Skipped, task.VerdictNever: Doomed,
}

// fate determines the fate of a step of which nothing was opened.
func (v *View) fate(s *Step) (fate Fate, cause int64, on string) {
	fate = Due
	worse := func(f Fate, id int64, step string) {
		if gravity[f] > gravity[fate] {
			fate, cause, on = f, id, step
		}
	}
	if s.Lines != "" {
		f, id := v.source(v.known[s.Lines])
		worse(f, id, s.Lines)
	}
	for _, n := range s.Needs {
		need := v.known[n.Step]
		if need == nil {
			worse(Waits, 0, n.Step)
			continue
		}
		worse(v.need(need, n.On), need.Cause, n.Step)
	}
	return fate, cause, on
}

// source is what the step whose lines are needed says to who needs them: nothing but success is enough.
func (v *View) source(step *Status) (Fate, int64) {
	switch {
	case step == nil:
		return Waits, 0
	case step.Fate != Opened || len(step.Tasks) != 1:
		return cmp.Or(map[Fate]Fate{Skipped: Skipped, Doomed: Doomed}[step.Fate], Waits), step.Cause
	}
	r, known := v.Results[step.Tasks[0]]
	switch {
	case !known:
		return Waits, step.Tasks[0]
	case r.End == statemachine.Succeeded:
		return Due, r.Task
	case r.Pending:
		return Waits, r.Task
	}
	fate := fates[task.NeedsSuccess.Verdict(r.End, r.Skipped, v.Plan.OnFailure)]
	if fate == Due {
		fate = Doomed // a plan that continues goes on without the lines
	}
	return fate, r.Task
}

// need is what a step says to one that needs it: as a task that was cancelled, or skipped, would.
func (v *View) need(step *Status, on task.When) Fate {
	switch step.Fate {
	case Opened:
		return Due
	case Skipped, Doomed:
		return fates[on.Verdict(statemachine.Cancelled, step.Fate == Skipped, v.Plan.OnFailure)]
	default:
		return Waits
	}
}

// Text says for people why a step was not opened yet.
func (v *View) Text(i int) string {
	s, st := &v.Steps[i], &v.Status[i]
	lines := s.Lines != "" && (st.On == s.Lines || st.On == "")
	switch {
	case st.Fate == Opened:
		return fmt.Sprintf("all %d tasks are opened", len(st.Tasks))
	case st.Fate == Skipped && st.Cause > 0:
		return fmt.Sprintf("is skipped, as task %d was", st.Cause)
	case st.Fate == Skipped:
		return "is skipped"
	case st.Fate == Doomed:
		return fmt.Sprintf("never opens: task %d, which it hangs on, did not succeed", st.Cause)
	case st.Fate == Due:
		return st.due(v.Plan.GrowthError)
	case lines && st.Cause > 0:
		return fmt.Sprintf("waits for the lines of step %s (task %d)", s.Lines, st.Cause)
	default:
		return "waits for step " + st.On
	}
}

// due says how far a step is that can be opened, and by which trouble no further.
func (st *Status) due(trouble string) string {
	switch {
	case trouble != "" && st.Begun:
		return fmt.Sprintf("was opened up to task %d of %d: %s", len(st.Tasks), st.Of, trouble)
	case trouble != "":
		return "cannot be opened: " + trouble
	case st.Begun:
		return fmt.Sprintf("is being opened: %d of %d tasks", len(st.Tasks), st.Of)
	default:
		return "is about to be opened"
	}
}
