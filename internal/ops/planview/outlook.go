package planview

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/ops/critical"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Outlook is what is still to come of a plan.
type Outlook struct {
	critical.Forecast

	Critical []*Task // the critical path
	// Slots is how many tasks of the plan are taken to run at a time.
	Slots    int
	TimeLeft time.Duration
	Known    bool // TimeLeft is

	Now     statemachine.Time
	Running []*Task // the longest running first
	States  map[statemachine.State]int64
}

// Outlook works out what is still to come of the plan, of which these are the tasks.
func (v *View) Outlook(ctx context.Context, on task.OnFailure, tasks []*Task) (*Outlook, error) {
	workers, err := v.Manager.Workers(ctx)
	if err != nil {
		return nil, fmt.Errorf("read workers: %w", err)
	}
	now, err := v.Store.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the time: %w", err)
	}
	return Look(tasks, on, now, workers), nil
}

// Look is Outlook with all that it depends on: the moment by the clock of Redis, and the workers there are.
func Look(tasks []*Task, on task.OnFailure, now statemachine.Time, workers []manager.Worker) *Outlook {
	return newPlanGraph(tasks).look(on, now, servedBy(workers))
}

// planGraph are tasks of a plan, each behind all that it needs, with what each needs.
type planGraph struct {
	tasks []*Task
	graph []critical.Task
}

func newPlanGraph(tasks []*Task) *planGraph {
	g := &planGraph{tasks: tasks, graph: make([]critical.Task, len(tasks))}
	place := make(map[int64]int, len(tasks))
	ends := map[task.When]critical.When{task.NeedsAny: critical.OnAny, task.NeedsFailure: critical.OnFailure}
	for i, t := range tasks {
		place[t.ID] = i
		step, _, _ := strings.Cut(t.Step, "[")
		node := critical.Task{Step: step, Program: t.Program, Needs: make([]critical.Need, 0, len(t.Needs))}
		for _, n := range t.Needs {
			if at, there := place[n.Task]; there {
				node.Needs = append(node.Needs, critical.Need{Task: at, On: ends[n.On]})
			}
		}
		g.graph[i] = node
	}
	return g
}

// look works out what is still to come at a moment of Redis' clock. slots says how many tasks run at a time, where so
// many run and so many wait for a slot.
func (g *planGraph) look(on task.OnFailure, now statemachine.Time, slots func(running, open int) int) *Outlook {
	o := &Outlook{States: map[statemachine.State]int64{}, Now: now}
	for i, t := range g.tasks {
		g.graph[i].Phase, g.graph[i].Time = t.phase(now)
		if o.States[t.End]++; t.End == statemachine.Running {
			o.Running = append(o.Running, t)
		}
	}
	o.Forecast = critical.Look(g.graph, on == task.FailureContinues)
	for _, i := range o.Path {
		o.Critical = append(o.Critical, g.tasks[i])
	}
	slices.SortStableFunc(o.Running, func(a, b *Task) int { return cmp.Compare(a.Began, b.Began) })
	o.Slots = slots(len(o.Running), int(o.States[statemachine.Open]))
	o.TimeLeft, o.Known = o.Left(o.Slots)
	return o
}

// phase is how far a task is, and how long it took or runs as yet.
func (t *Task) phase(now statemachine.Time) (critical.Phase, time.Duration) {
	switch {
	case t.Skipped:
		return critical.Skipped, 0
	case t.End == statemachine.Succeeded && t.Began > 0 && t.Executed > 0:
		return critical.Succeeded, since(t.Began, t.Executed)
	case t.End == statemachine.Succeeded:
		return critical.Succeeded, 0
	case t.End.Ended(), t.End == missing, t.DoomedBy > 0:
		return critical.Failed, 0
	case t.End == statemachine.Executed: // a server is about to see its end
		return critical.Running, math.MaxInt64
	case t.End == statemachine.Running:
		return critical.Running, since(t.Began, now)
	default:
		return critical.Waiting, 0
	}
}

// since is how long after a moment another one was; 0 if the first is not known.
func since(then, now statemachine.Time) time.Duration {
	if then == 0 || now < then {
		return 0
	}
	return time.Duration(now-then) * time.Microsecond
}

// RunningFor is how long a task runs.
func (o *Outlook) RunningFor(t *Task) time.Duration { return since(t.Began, o.Now) }

// servedBy says how many tasks of a plan run at a time: as many as do while others wait for a slot, else as many as
// there are slots.
func servedBy(workers []manager.Worker) func(running, open int) int {
	registered := 0
	for i := range workers {
		if workers[i].State == manager.WorkerReady {
			registered += workers[i].Slots
		}
	}
	return func(running, open int) int {
		if running > 0 && open > 0 {
			return running
		}
		return max(running, registered)
	}
}
