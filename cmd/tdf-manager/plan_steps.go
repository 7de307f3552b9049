package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/manager"
)

// planSteps reads the steps of a plan that are opened once it runs, as long as some are not.
func (s *session) planSteps(ctx context.Context, p *manager.Plan) ([]manager.PlanStep, error) {
	if p.Growing <= 0 {
		return nil, nil
	}
	steps, err := s.manager.PlanSteps(ctx, p.ID)
	if errors.Is(err, manager.ErrSteps) {
		return nil, nil // the plan says so, or will
	}
	if err != nil {
		return nil, fmt.Errorf("read steps: %w", err)
	}
	return steps, nil
}

func planStepObject(step *manager.PlanStep) map[string]any {
	return map[string]any{
		stepField: step.Name, "lines": step.Lines, stateField: step.State, "why": step.Why, "opened": len(step.Tasks),
	}
}

// listSteps lists the steps that were not opened to their end, and why.
func listSteps(s *session, steps []manager.PlanStep) error {
	if len(steps) == 0 {
		return nil
	}
	table := cli.NewTable(s.out, "STEP", "TO BE OPENED")
	for i := range steps {
		if steps[i].State != "opened" {
			table.Row(steps[i].Name, steps[i].Why)
		}
	}
	if err := printf(s.out, "\n"); err != nil {
		return err
	}
	return table.Flush()
}

// stepsToOpen says of how many steps not all tasks are there: "2 steps are to be opened yet", "1 step was not opened".
func stepsToOpen(p *manager.Plan) string {
	one, more := "1 step is to be opened yet", "%d steps are to be opened yet"
	if p.State.Over() {
		one, more = "1 step was not opened", "%d steps were not opened"
	}
	if p.Growing == 1 {
		return one
	}
	return fmt.Sprintf(more, p.Growing)
}

// withoutSteps says of an estimate what it leaves out.
func withoutSteps(p *manager.Plan) string {
	if p.Growing > 0 {
		return ", without the steps that are to be opened"
	}
	return ""
}
