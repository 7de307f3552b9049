package manager

import (
	"context"
	"errors"
	"time"

	"github.com/tdf-go/tdf/internal/ops/planview"
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

// PlanEstimate is how long the rest of a plan takes, by how long tasks of the same
// steps and programs took. A time that is not known yet is nil.
type PlanEstimate struct {
	// Left is how long all of it still takes.
	Left *task.Seconds `json:"left"`
	// CriticalPath is the longest chain of tasks that have not ended, and
	// CriticalPathTime how long it takes.
	CriticalPath     []PlanPlace   `json:"critical_path"`
	CriticalPathTime *task.Seconds `json:"critical_path_time"`
	// Work is how long all tasks that are to run still take together, ToRun how
	// many they are, and Slots how many of them run at a time.
	Work  *task.Seconds `json:"work"`
	ToRun int           `json:"to_run"`
	Slots int           `json:"slots"`
}

// PlanPlace is a task of a plan, and its step; empty for nothing.
type PlanPlace struct {
	ID   int64  `json:"id"`
	Step string `json:"step"`
}

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

// ViewPlan reads a plan with its tasks. The error matches [ErrNoPlan] if there is none with that id.
func (m *Manager) ViewPlan(ctx context.Context, id int64) (*PlanView, error) {
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
			PlanPlace: placeOf(t), Program: t.Program, Input: t.Input, State: t.State(),
			Needs: append([]task.Need{}, t.Needs...), DoomedBy: t.DoomedBy,
		}
	}
	if !p.State.Over() {
		ahead, err := view.Outlook(ctx, p.OnFailure, tasks)
		if err != nil {
			return nil, err
		}
		v.Estimate = newEstimate(ahead)
	}
	if p.Growing > 0 {
		v.Steps, err = m.PlanSteps(ctx, id)
	}
	if errors.Is(err, ErrSteps) {
		v.Steps, err = []task.PlanStep{}, nil // the plan says so, or will
	}
	return v, err
}

func placeOf(t *planview.Task) PlanPlace { return PlanPlace{ID: t.ID, Step: t.Step} }

func newEstimate(o *planview.Outlook) *PlanEstimate {
	known := func(d time.Duration, is bool) *task.Seconds {
		if !is {
			return nil
		}
		return new(task.Seconds(d))
	}
	e := &PlanEstimate{
		Left: known(o.TimeLeft, o.Known), CriticalPath: make([]PlanPlace, len(o.Critical)), CriticalPathTime: known(o.PathTime, o.Timed),
		Work: known(o.Work, o.Timed), ToRun: o.Tasks, Slots: o.Slots,
	}
	for i, t := range o.Critical {
		e.CriticalPath[i] = placeOf(t)
	}
	return e
}
