package verbs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/critical"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// outlook is what is still to come of a plan.
type outlook struct {
	critical.Forecast

	path []*planned // the critical path
	// slots is how many tasks of the plan are taken to run at a time.
	slots int
	left  time.Duration
	known bool // left is

	now     statemachine.Time
	running []*planned // the longest running first
	states  map[statemachine.State]int64
}

// planGraph are tasks of a plan, each behind all that it needs, with what each needs.
type planGraph struct {
	tasks []*planned
	graph []critical.Task
}

func newPlanGraph(tasks []*planned) *planGraph {
	g := &planGraph{tasks: tasks, graph: make([]critical.Task, len(tasks))}
	place := make(map[int64]int, len(tasks))
	ends := map[store.When]critical.When{store.NeedsAny: critical.OnAny, store.NeedsFailure: critical.OnFailure}
	for i, t := range tasks {
		place[t.id] = i
		step, _, _ := strings.Cut(t.step, "[")
		node := critical.Task{Step: step, Program: t.program, Needs: make([]critical.Need, 0, len(t.needs))}
		for _, n := range t.needs {
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
func (g *planGraph) look(on manager.OnFailure, now statemachine.Time, slots func(running, open int) int) *outlook {
	o := &outlook{states: map[statemachine.State]int64{}, now: now}
	for i, t := range g.tasks {
		g.graph[i].Phase, g.graph[i].Time = t.phase(now)
		if o.states[t.end]++; t.end == statemachine.Running {
			o.running = append(o.running, t)
		}
	}
	o.Forecast = critical.Look(g.graph, on == manager.FailureContinues)
	for _, i := range o.Path {
		o.path = append(o.path, g.tasks[i])
	}
	slices.SortStableFunc(o.running, func(a, b *planned) int { return cmp.Compare(a.began, b.began) })
	o.slots = slots(len(o.running), int(o.states[statemachine.Open]))
	o.left, o.known = o.Left(o.slots)
	return o
}

// phase is how far a task is, and how long it took or runs as yet.
func (t *planned) phase(now statemachine.Time) (critical.Phase, time.Duration) {
	switch {
	case t.skipped:
		return critical.Skipped, 0
	case t.end == statemachine.Succeeded && t.began > 0 && t.executed > 0:
		return critical.Succeeded, since(t.began, t.executed)
	case t.end == statemachine.Succeeded:
		return critical.Succeeded, 0
	case t.end.Ended(), t.end == missing, t.doomedBy > 0:
		return critical.Failed, 0
	case t.end == statemachine.Executed: // a server is about to see its end
		return critical.Running, math.MaxInt64
	case t.end == statemachine.Running:
		return critical.Running, since(t.began, now)
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

// String is for people: "about 3 min left, critical path: fetch -> encode[7] -> join (2 min)"; empty if nothing is
// to run any more.
func (o *outlook) String() string {
	if o.Tasks == 0 {
		return ""
	}
	return o.leftText() + ", critical path: " + o.pathText()
}

// leftText is how long all of it still takes, as far as that is known.
func (o *outlook) leftText() string {
	switch {
	case o.known && o.left < time.Second:
		return roughly(o.left) + " left"
	case o.known:
		return "about " + roughly(o.left) + " left"
	case !o.Timed:
		return "unknown time left (none has succeeded yet)"
	default:
		return "unknown time left (no worker is ready)"
	}
}

// The most of a path that is shown.
const (
	pathBegin = 3
	pathEnd   = 2
)

func (o *outlook) pathText() string {
	names := make([]string, 0, pathBegin+pathEnd+1)
	for i, t := range o.path {
		switch n := len(o.path); {
		case n <= pathBegin+pathEnd+1, i < pathBegin, i >= n-pathEnd:
			names = append(names, t.called())
		case i == pathBegin:
			names = append(names, fmt.Sprintf("... %d more ...", n-pathBegin-pathEnd))
		}
	}
	text := strings.Join(names, " -> ")
	if o.Timed {
		text += " (" + roughly(o.PathTime) + ")"
	}
	return text
}

// called is the step of a task, or its id if it has none.
func (t *planned) called() string {
	if t.step == "" {
		return fmt.Sprintf("task %d", t.id)
	}
	return cli.Safe(t.step)
}

// mostRunningShown is how many running tasks are named.
const mostRunningShown = 3

// runningSteps names the tasks that run longest: "encode[3] for 12 s, encode[4] for 3 s and 2 more".
func (o *outlook) runningSteps() string {
	names := make([]string, 0, mostRunningShown)
	for _, t := range o.running[:min(len(o.running), mostRunningShown)] {
		names = append(names, t.called()+" for "+roughly(since(t.began, o.now)))
	}
	text := strings.Join(names, ", ")
	if more := len(o.running) - len(names); more > 0 {
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

// object is the JSON form; times are in seconds, and null where they are not known.
func (o *outlook) object() map[string]any {
	seconds := func(d time.Duration, known bool) any {
		if !known {
			return nil
		}
		return d.Seconds()
	}
	path := make([]map[string]any, len(o.path))
	for i, t := range o.path {
		path[i] = map[string]any{"id": t.id, stepField: t.step}
	}
	return map[string]any{
		"left": seconds(o.left, o.known), "critical_path": path, "critical_path_time": seconds(o.PathTime, o.Timed),
		"work": seconds(o.Work, o.Timed), "to_run": o.Tasks, "slots": o.slots,
	}
}
