package manager

import (
	"context"
	"fmt"

	"github.com/tdf-go/tdf/internal/store/growth"
	"github.com/tdf-go/tdf/task"
)

// LineItem stands in Spec.Input and in words of Spec.Argv where a line comes; see [LaterStep].
const LineItem = growth.Item

// MaxLines is how many lines a [LaterStep] may be repeated for.
const MaxLines = growth.MaxLines

// LaterStep is a step of a plan that servers open once the plan runs: one that is repeated for the lines of a result, or
// one that needs such a step.
type LaterStep struct {
	Name string
	// Lines is the step for the lines of whose result it is repeated, a step of one task; empty for none. Most is how many
	// lines there may be, [MaxLines] if 0.
	Lines string
	Most  int
	// Needs are the steps that it needs, in the order of the arguments.
	Needs []task.StepNeed
	// Specs are its tasks, without needs. With Lines it is one, with [LineItem] for the line.
	Specs []task.Spec
}

// SubmitLater leaves steps of a plan that is being built to the servers, each behind all that it needs. known are the tasks of
// the steps that were opened, by their names. Called again it changes nothing. A task that cannot be opened is a *[SpecError],
// whose Index counts through all steps; the error may match [task.ErrNoPlan] or [task.ErrNoQueue].
func (m *Manager) SubmitLater(ctx context.Context, plan task.PlanID, known map[string][]int64, steps []LaterStep) error {
	t := &growth.Template{Known: map[string][]int64{}}
	sub := m.newSubmission([]SubmitOption{InPlan(plan)})
	grows := map[string]bool{} // steps for the lines of whose results others are
	for i := range steps {
		grows[steps[i].Lines] = true
	}
	tasks := 0
	for i := range steps {
		from := &steps[i]
		s := growth.Step{Name: from.Name, Lines: from.Lines, Most: from.Most, Needs: from.Needs}
		for k := range from.Specs {
			d, err := sub.defineLater(ctx, &from.Specs[k])
			if err != nil {
				return specError(ctx, tasks, err)
			}
			d.Grows = grows[s.Name]
			s.Tasks = append(s.Tasks, d)
			tasks++
		}
		t.Steps = append(t.Steps, s)
	}
	for _, name := range t.Named() {
		if ids, is := known[name]; is {
			t.Known[name] = ids
		}
	}
	text, err := t.Text()
	if err != nil {
		return err
	}
	_, err = retryUntilAvailable(ctx, m, func() (bool, error) {
		return true, m.store.KeepGrowth(ctx, plan, text, len(steps), t.KnownSources())
	})
	return err
}

// defineLater completes a task, and checks it with some line.
func (s *submission) defineLater(ctx context.Context, spec *task.Spec) (task.Definition, error) {
	if spec.StartIn > 0 || spec.EndIn > 0 {
		err := fieldError("start_in", max(spec.StartIn, spec.EndIn).String(), "left out, as is end_in, where servers open the task later")
		return task.Definition{}, err
	}
	with := growth.Sample(*spec)
	d, _, err := s.define(ctx, &with)
	for _, name := range []string{"input", "argv"} {
		if text, said := spec.Text(name); said && err == nil {
			err = d.Set(name, text)
		}
	}
	return d, err
}

// planSteps reads the steps of a plan that are opened once it runs, as long as not all of them were. The error matches
// growth.ErrTemplate if they cannot be read, because of damage or of a newer release.
func (m *Manager) planSteps(ctx context.Context, id task.PlanID) ([]task.PlanStep, error) {
	v, err := retryUntilAvailable(ctx, m, func() (*growth.View, error) { return growth.Read(ctx, m.store, id) })
	if err != nil {
		return nil, fmt.Errorf("plan %d: %w", id, err)
	}
	steps := make([]task.PlanStep, len(v.Status))
	for i := range v.Status {
		steps[i] = task.PlanStep{
			Name: v.Steps[i].Name, Lines: v.Steps[i].Lines, State: string(v.Status[i].Fate), Why: v.Text(i),
			Opened: len(v.Status[i].Tasks), Tasks: v.Status[i].Tasks,
		}
	}
	return steps, nil
}
