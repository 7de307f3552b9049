package whytest

import (
	"fmt"
	"strconv"

	"github.com/tdf-go/tdf/internal/ops/why"
	"github.com/tdf-go/tdf/statemachine"
)

// planID is the id of the plan of a task: each has one of its own.
func planID(task int64) int64 { return 1000 + task }

// drawPlanned puts a blocked task into a plan, or not.
func drawPlanned(t drawer, task *Task) {
	task.Plan = oneOf(t, "plan", "", why.PlanReady, why.PlanBuilding, why.PlanHeld)
	if task.Plan == "" {
		return
	}
	task.HandHeld = t.seldom("held by hand")
	if task.Plan == why.PlanHeld && t.seldom("by a failure") {
		task.FailedTask = 99
	}
	states := []statemachine.State{statemachine.Open, statemachine.Running, statemachine.Failed}
	for i := range oneOf(t, "needs", 0, 1, 2, 12) {
		task.Needs = append(task.Needs, why.Need{ID: int64(50 + i), State: states[i%3], On: []string{"success", "any", "failure"}[i%3]})
	}
}

// changePlan changes the plan of a task.
func (p *Plan) changePlan(c why.Remedy) error {
	id, err := strconv.ParseInt(c.Name, 10, 64)
	if err != nil {
		return err
	}
	t := p.Task(id - planID(0))
	wanted := map[string]why.PlanState{why.AttrReady: why.PlanBuilding, why.AttrHold: why.PlanHeld, why.AttrRetry: why.PlanHeld}
	if t.Plan != wanted[c.Attribute] || (c.Attribute == why.AttrRetry) != (t.FailedTask != 0) {
		return fmt.Errorf("%s is not for a plan that is %s", c.Attribute, t.Plan)
	}
	t.Plan = why.PlanReady
	p.unblock(t)
	return nil
}

// unblock opens a task if nothing keeps it.
func (p *Plan) unblock(t *Task) {
	if t.HandHeld || len(t.Needs) > 0 || t.Plan != "" && t.Plan != why.PlanReady {
		return
	}
	t.State, t.Since = statemachine.Open, p.Now
	if t.StartAfter > 0 { // its place in line is lost
		t.StartAfter = max(t.StartAfter, p.Now)
	}
}
