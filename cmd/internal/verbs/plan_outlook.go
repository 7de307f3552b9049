package verbs

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/planview"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// view reads a plan.
func (s *session) view(plan task.PlanID) *planview.View {
	return &planview.View{Store: s.store, Plan: plan}
}

// outlook is what is still to come of a plan, for people.
type outlook struct{ *planview.Outlook }

// String is for people: "about 3 min left, critical path: fetch -> encode[7] -> join (2 min)"; empty if nothing is
// to run any more.
func (o *outlook) String() string {
	if o.ToRun == 0 {
		return ""
	}
	return leftText(&o.Estimate) + ", critical path: " + pathText(&o.Estimate)
}

// leftText is how long all of a plan still takes.
func leftText(e *manager.PlanEstimate) string {
	switch {
	case e.Left == nil && e.CriticalPathTime == nil:
		return "unknown time left (none has succeeded yet)"
	case e.Left == nil:
		return "unknown time left (no worker is ready)"
	case time.Duration(*e.Left) < time.Second:
		return roughly(time.Duration(*e.Left)) + " left"
	default:
		return "about " + roughly(time.Duration(*e.Left)) + " left"
	}
}

// The most of a path that is shown.
const (
	pathBegin = 3
	pathEnd   = 2
)

func pathText(e *manager.PlanEstimate) string {
	path, takes := e.CriticalPath, e.CriticalPathTime
	names := make([]string, 0, pathBegin+pathEnd+1)
	for i, t := range path {
		switch n := len(path); {
		case n <= pathBegin+pathEnd+1, i < pathBegin, i >= n-pathEnd:
			names = append(names, called(t.ID, t.Step))
		case i == pathBegin:
			names = append(names, fmt.Sprintf("... %d more ...", n-pathBegin-pathEnd))
		}
	}
	text := strings.Join(names, " -> ")
	if takes != nil {
		text += " (" + roughly(time.Duration(*takes)) + ")"
	}
	return text
}

// called is the step of a task, or its id if it has none.
func called(id int64, step string) string {
	if step == "" {
		return fmt.Sprintf("task %d", id)
	}
	return cli.Safe(step)
}

// mostRunningShown is how many running tasks are named.
const mostRunningShown = 3

// runningSteps names the tasks that run longest: "encode[3] for 12 s, encode[4] for 3 s and 2 more".
func (o *outlook) runningSteps() string {
	names := make([]string, 0, mostRunningShown)
	for _, t := range o.Running[:min(len(o.Running), mostRunningShown)] {
		names = append(names, called(t.ID, t.Step)+" for "+roughly(o.RunningFor(t)))
	}
	text := strings.Join(names, ", ")
	if more := len(o.Running) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// roughly writes a duration in the units that matter at its size.
func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return "less than 1 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", (d+30*time.Second)/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%d days %d h", d/day, d%day/time.Hour)
	}
}

// listSteps lists the steps that were not opened to their end, and why.
func listSteps(s *session, steps []task.PlanStep) {
	if len(steps) == 0 {
		return
	}
	s.printf("\n")
	table := s.out.Table("STEP", "TO BE OPENED")
	for i := range steps {
		if steps[i].State != "opened" {
			table.Row(steps[i].Name, steps[i].Why)
		}
	}
	table.Flush()
}

// stepsToOpen says of how many steps not all tasks are there: "2 steps are not opened yet", "1 step was not opened".
func stepsToOpen(p *task.Plan) string {
	one, more := "1 step is not opened yet", "%d steps are not opened yet"
	if p.State.Terminal() {
		one, more = "1 step was not opened", "%d steps were not opened"
	}
	if p.Growing == 1 {
		return one
	}
	return fmt.Sprintf(more, p.Growing)
}

// planProgress is how a plan goes.
type planProgress struct {
	s    *session
	plan atomic.Pointer[task.Plan] // as it was read last

	// What follows belongs to the display.
	follow *planview.Follower
	ahead  *outlook
}

// look reads what has changed. While Redis does not answer, what was read last stays.
func (r *planProgress) look(ctx context.Context) {
	p := r.plan.Load()
	if p == nil {
		return
	}
	if r.follow == nil {
		follow, err := r.s.view(p.ID).Follow(ctx)
		if err != nil {
			return
		}
		r.follow = follow
	} else if r.follow.Look(ctx, p.Left) != nil {
		return
	}
	r.ahead = &outlook{r.follow.Outlook(p.OnFailure)}
}

func (r *planProgress) lines(terminal bool) []string {
	p := r.plan.Load()
	if p == nil {
		return nil
	}
	return planLines(p, r.ahead, terminal)
}

func planLines(p *task.Plan, ahead *outlook, terminal bool) []string {
	lines := []string{strings.TrimSpace(doneText(p.Total-p.Left, p.Total, terminal) + "  " + planStates(p, ahead))}
	if ahead == nil {
		return lines
	}
	if text := ahead.runningSteps(); text != "" {
		lines = append(lines, "running: "+text)
	}
	if text := ahead.String(); text != "" {
		lines = append(lines, text)
	}
	return lines
}

// planStates counts the tasks of a plan by their states: how they ended as the plan has it, where the others are as it was
// read of each.
func planStates(p *task.Plan, ahead *outlook) string {
	parts := []string{}
	if ended := endedLine(p); ended != "" {
		parts = append(parts, ended)
	}
	if ahead != nil {
		waiting := p.Left
		for _, state := range []statemachine.State{statemachine.Running, statemachine.Executed, statemachine.Open} {
			if n := min(ahead.States[state], waiting); n > 0 {
				parts = append(parts, fmt.Sprintf("%s %d", state, n))
				waiting -= n
			}
		}
		if waiting > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", statemachine.Blocked, waiting))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, string(p.State))
	}
	if p.Growing > 0 {
		parts = append(parts, stepsToOpen(p))
	}
	return strings.Join(parts, "  ")
}
