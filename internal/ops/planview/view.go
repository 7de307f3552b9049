// Package planview is what a plan looks like while it runs: its tasks, how far they are, and what is still to come; and how it is drawn.
package planview

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/ops/critical"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// View reads one plan.
type View struct {
	Store Store
	Plan  task.PlanID
}

// Store is the namespace as a view needs it.
type Store interface {
	Plan(ctx context.Context, id task.PlanID) (*task.Plan, error)
	PlanTasks(ctx context.Context, id task.PlanID, offset, limit int) ([]int64, error)
	Fields(ctx context.Context, ids []int64, names ...string) ([]map[string]string, error)
	Workers(ctx context.Context) ([]task.Worker, statemachine.Time, error)
	EventSpan(ctx context.Context) (oldest, newest int64, err error)
	Events(ctx context.Context, first int64, n int) ([]task.Event, error)
}

// page is how many tasks are read in one go.
const page = 500

// Task is what a list has of a task of a plan. It is small, and no [task.Task], because a plan may have 100,000.
type Task struct {
	ID   int64
	Step string // what it is called in the plan, empty for nothing
	// Input is what Program is called with (see [task.InputText]).
	Program, Input string
	End            statemachine.State // the state it is in if it has not ended
	Needs          []task.Need
	DoomedBy       int64
	Skipped        bool
	// Began and Executed are the stamps of the round it is in, 0 for none.
	Began, Executed statemachine.Time
}

// Place is the id and the step of the task.
func (t *Task) Place() Place { return Place{ID: t.ID, Step: t.Step} }

// missing stands for the state of a task whose record is not there.
const missing statemachine.State = "missing"

// State is for people: a skipped task is no cancelled one.
func (t *Task) State() string {
	if t.Skipped {
		return "skipped"
	}
	return string(t.End)
}

// Name is what the task is called: its step, with its program where that has another name.
func (t *Task) Name() string {
	switch StepName(t.Step) {
	case "":
		return t.Program
	case t.Program:
		return t.Step
	default:
		return t.Step + " (" + t.Program + ")"
	}
}

// StepName is a step without the place of a task among those of the step: count of count[2].
func StepName(step string) string {
	name, _, _ := strings.Cut(step, "[")
	return name
}

// taskFields are the fields of a task that are read for it.
var taskFields = append([]string{
	"program", "input", "argv", "state", "outcome", "needs", "doomed_by", "skipped", "retried_by", "retry_of", "step", "round",
}, stampFields(0)...)

// stampFields are when a round began, and when it was executed.
func stampFields(round int) []string {
	return []string{
		statemachine.RoundField(round, string(statemachine.Running)), statemachine.RoundField(round, string(statemachine.Executed)),
	}
}

// number reads what another client may have written; 0 if that is no number.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func taskOf(id int64, f map[string]string) *Task {
	if f == nil {
		return &Task{ID: id, End: missing}
	}
	var argv []string
	if text := f["argv"]; text != "" {
		_ = json.Unmarshal([]byte(text), &argv) // what is damaged is shown as nothing
	}
	state := statemachine.Task{State: statemachine.State(f["state"]), Outcome: statemachine.State(f["outcome"])}
	t := &Task{
		ID: id, Step: f["step"], Program: f["program"], Input: task.InputText(f["input"], argv), End: state.End(),
		Needs: task.ParseNeeds(f["needs"]), DoomedBy: number(f["doomed_by"]), Skipped: f["skipped"] == "1",
	}
	t.stamp(0, f)
	return t
}

// stamp reads when a round of the task began and was executed.
func (t *Task) stamp(round int, f map[string]string) {
	names := stampFields(round)
	t.Began, t.Executed = task.Stamp(task.ParseMoment(f[names[0]])), task.Stamp(task.ParseMoment(f[names[1]]))
}

// taskSet is what was read of the tasks of a plan.
type taskSet struct {
	view    *View
	listed  int // how many ids of the plan were read
	tasks   map[int64]*Task
	added   []*Task         // in the order in which they were added, also those that were retried
	retries map[int64]int64 // of those the one that repeats each
}

func (v *View) newSet() *taskSet {
	return &taskSet{view: v, tasks: map[int64]*Task{}, retries: map[int64]int64{}}
}

// Tasks reads the tasks of the plan, each behind all that it needs. A retry
// stands for what it repeats, also where that is needed.
func (v *View) Tasks(ctx context.Context) ([]*Task, error) {
	set := v.newSet()
	if err := set.grow(ctx, math.MaxInt); err != nil {
		return nil, fmt.Errorf("read plan %d: %w", v.Plan, err)
	}
	return set.sorted(), nil
}

// grow reads the tasks that were added, at most pages of them.
func (set *taskSet) grow(ctx context.Context, pages int) error {
	for range pages {
		ids, err := set.view.Store.PlanTasks(ctx, set.view.Plan, set.listed, page)
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := set.read(ctx, ids); err != nil {
			return err
		}
		set.listed += len(ids)
	}
	return nil
}

// read reads tasks, also such as were read before.
func (set *taskSet) read(ctx context.Context, ids []int64) error {
	found, err := set.view.Store.Fields(ctx, ids, taskFields...)
	if err != nil {
		return fmt.Errorf("read tasks: %w", err)
	}
	later := map[int][]int64{} // those in a later round, whose stamps have other names
	for i, f := range found {
		id := ids[i]
		t := set.tasks[id]
		if t == nil {
			t = &Task{}
			set.tasks[id] = t
			set.added = append(set.added, t)
		}
		*t = *taskOf(id, f)
		if round := int(number(f["round"])); round > 0 {
			later[round] = append(later[round], id)
		}
		if next := number(f["retried_by"]); next > id { // a retry is always newer
			set.retries[id] = next
		}
		if of := number(f["retry_of"]); of > 0 && of < id {
			set.retries[of] = id
		}
	}
	return set.readStamps(ctx, later)
}

// readStamps reads the stamps of the rounds in which tasks are.
func (set *taskSet) readStamps(ctx context.Context, rounds map[int][]int64) error {
	for round, ids := range rounds {
		found, err := set.view.Store.Fields(ctx, ids, stampFields(round)...)
		if err != nil {
			return fmt.Errorf("read rounds: %w", err)
		}
		for i, f := range found {
			set.tasks[ids[i]].stamp(round, f)
		}
	}
	return nil
}

// sorted are the tasks, each behind what it needs, without those that were retried: a
// retry was added after those that need it.
func (set *taskSet) sorted() []*Task {
	left := map[int64]*Task{}
	for _, t := range set.added {
		if set.retries[t.ID] == 0 {
			left[t.ID] = t
		}
	}
	sorted := make([]*Task, 0, len(left))
	var visit func(t *Task)
	visit = func(t *Task) {
		delete(left, t.ID)
		for i := range t.Needs {
			need := &t.Needs[i]
			for set.retries[need.Task] > need.Task {
				need.Task = set.retries[need.Task]
			}
			if before := left[need.Task]; before != nil {
				visit(before)
			}
		}
		sorted = append(sorted, t)
	}
	for _, t := range set.added {
		if left[t.ID] != nil {
			visit(t)
		}
	}
	return sorted
}

// Outlook is what is still to come of a plan, at a moment.
type Outlook struct {
	Estimate

	Now     statemachine.Time
	Running []*Task // the longest running first
	States  map[statemachine.State]int64
}

// Estimate is how long the rest of a plan takes, by how long tasks of the same
// steps and programs took. A time that is not known yet is nil.
type Estimate struct {
	// Left is how long all of it still takes.
	Left *task.Seconds `json:"left"`
	// CriticalPath is the longest chain of tasks that have not ended, and
	// CriticalPathTime how long it takes.
	CriticalPath     []Place       `json:"critical_path"`
	CriticalPathTime *task.Seconds `json:"critical_path_time"`
	// Work is how long all tasks that are to run still take together, ToRun how
	// many they are, and Slots how many of them run at a time.
	Work  *task.Seconds `json:"work"`
	ToRun int           `json:"to_run"`
	Slots int           `json:"slots"`
}

// Place is a task of a plan, and its step; empty for nothing.
type Place struct {
	ID   int64  `json:"id"`
	Step string `json:"step"`
}

// Outlook works out what is still to come of the plan, of which these are the tasks.
func (v *View) Outlook(ctx context.Context, on task.OnFailure, tasks []*Task) (*Outlook, error) {
	workers, now, err := v.Store.Workers(ctx)
	if err != nil {
		return nil, fmt.Errorf("read workers: %w", err)
	}
	return Look(tasks, on, now, workers), nil
}

// Look is Outlook with all that it depends on: the moment by the clock of Redis, and the workers there are.
func Look(tasks []*Task, on task.OnFailure, now statemachine.Time, workers []task.Worker) *Outlook {
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
	for i, t := range tasks {
		place[t.ID] = i
		node := critical.Task{Step: StepName(t.Step), Program: t.Program, Needs: make([]task.Need, 0, len(t.Needs))}
		for _, n := range t.Needs {
			if at, there := place[n.Task]; there {
				node.Needs = append(node.Needs, task.Need{Index: at, On: n.On})
			}
		}
		g.graph[i] = node
	}
	return g
}

// look computes the outlook at a moment of Redis' clock. slots says how many tasks can run at a time, from the numbers
// of running tasks and of open ones, which wait for a slot.
func (g *planGraph) look(on task.OnFailure, now statemachine.Time, slots func(running, open int) int) *Outlook {
	o := &Outlook{States: map[statemachine.State]int64{}, Now: now}
	for i, t := range g.tasks {
		g.graph[i].Phase, g.graph[i].Time = t.phase(now)
		if o.States[t.End]++; t.End == statemachine.Running {
			o.Running = append(o.Running, t)
		}
	}
	slices.SortStableFunc(o.Running, func(a, b *Task) int { return cmp.Compare(a.Began, b.Began) })
	f := critical.Look(g.graph, on)
	o.ToRun, o.Slots, o.CriticalPath = f.Tasks, slots(len(o.Running), int(o.States[statemachine.Open])), []Place{}
	for _, i := range f.Path {
		o.CriticalPath = append(o.CriticalPath, g.tasks[i].Place())
	}
	if f.Timed {
		o.CriticalPathTime, o.Work = new(task.Seconds(f.PathTime)), new(task.Seconds(f.Work))
	}
	if left, known := f.Left(o.Slots); known {
		o.Left = new(task.Seconds(left))
	}
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
	case t.End.IsOutcome(), t.End == missing, t.DoomedBy > 0:
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
func servedBy(workers []task.Worker) func(running, open int) int {
	registered := 0
	for i := range workers {
		if workers[i].State == task.WorkerReady {
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
