package manager

import (
	"context"
	"errors"

	"github.com/tdf-go/tdf/internal/ops/planview"
	"github.com/tdf-go/tdf/internal/store/growth"
	"github.com/tdf-go/tdf/task"
)

// PlanView is a plan with its tasks, and with what is still to come of it.
type PlanView struct {
	*task.Plan

	// Estimate is nil once the plan is over.
	Estimate *PlanEstimate `json:"estimate"`
	// Tasks come each behind all that it needs. A retry stands for what it repeats,
	// also where that is needed.
	Tasks []PlannedTask `json:"tasks"`
	// Steps are those that are opened once the plan runs, as long as not all of them were.
	Steps []task.PlanStep `json:"steps"`
}

// PlanEstimate is how long the rest of a plan takes.
type PlanEstimate = planview.Estimate

// PlanPlace is a task of a plan, and its step.
type PlanPlace = planview.Place

// PlannedTask is a task of a plan, as a list of them shows it.
type PlannedTask struct {
	PlanPlace

	Program string `json:"program"`
	// Input is what the program is called with (see [task.InputText]).
	Input string `json:"input"`
	// State is that of the task, or how it ended: skipped where it was needed only
	// after a failure that did not come.
	State string      `json:"state"`
	Needs []task.Need `json:"needs"`
	// DoomedBy is the task because of which it never runs; 0 for none.
	DoomedBy int64 `json:"doomed_by,omitempty"`
}

// ViewPlan returns a plan with its tasks. The error matches [task.ErrNoPlan] if there is
// none with that id.
func (m *Manager) ViewPlan(ctx context.Context, id task.PlanID) (*PlanView, error) {
	p, err := m.Plan(ctx, id)
	if err != nil {
		return nil, err
	}
	view := &planview.View{Store: m.store, Plan: id}
	tasks, err := view.Tasks(ctx)
	if err != nil {
		return nil, err
	}
	v := &PlanView{Plan: p, Tasks: make([]PlannedTask, len(tasks)), Steps: []task.PlanStep{}}
	for i, t := range tasks {
		v.Tasks[i] = PlannedTask{
			PlanPlace: t.Place(), Program: t.Program, Input: t.Input, State: t.State(),
			Needs: append([]task.Need{}, t.Needs...), DoomedBy: t.DoomedBy,
		}
	}
	if !p.State.Terminal() {
		ahead, err := view.Outlook(ctx, p.OnFailure, tasks)
		if err != nil {
			return nil, err
		}
		v.Estimate = &ahead.Estimate
	}
	if p.Growing > 0 {
		v.Steps, err = m.planSteps(ctx, id)
	}
	if errors.Is(err, growth.ErrTemplate) {
		v.Steps, err = []task.PlanStep{}, nil // the plan says so, or will
	}
	return v, err
}
