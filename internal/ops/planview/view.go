// Package planview is what a plan looks like while it runs: its tasks, how far they are, and what is still to come.
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
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// View reads one plan.
type View struct {
	Store *store.Store
	Plan  int64
}

// page is how many tasks are read in one go.
const page = 500

// Task is a task of a plan, as a list of them shows it.
type Task struct {
	ID      int64
	Step    string // what it is called in the plan, empty for nothing
	Program string
	// Input is what the program is called with, or else Argv.
	Input    string
	Argv     []string
	End      statemachine.State // the state it is in if it has not ended
	Needs    []task.Need
	DoomedBy int64
	Skipped  bool

	// Round is the round it is in; Began and Executed are its stamps, 0 for none.
	Round           int
	Began, Executed statemachine.Time
	RetryOf         int64
}

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
	step, _, _ := strings.Cut(t.Step, "[")
	switch step {
	case "":
		return t.Program
	case t.Program:
		return t.Step
	default:
		return t.Step + " (" + t.Program + ")"
	}
}

// Stamps of a round, and the fields they have in the first one.
var (
	beganStamp    = string(statemachine.Running)
	executedStamp = string(statemachine.Executed)
	firstBegan    = statemachine.RoundField(0, beganStamp)
	firstExecuted = statemachine.RoundField(0, executedStamp)
)

// taskFields are the fields of a task that are read for it.
var taskFields = []string{
	"program", "input", "argv", "state", "outcome", "needs", "doomed_by", "skipped", "retried_by", "retry_of", "step",
	"round", firstBegan, firstExecuted,
}

func taskOf(id int64, f map[string]string) *Task {
	number := func(name string) int64 { n, _ := strconv.ParseInt(f[name], 10, 64); return n }
	var argv []string
	if text := f["argv"]; text != "" {
		_ = json.Unmarshal([]byte(text), &argv) // what is damaged is shown as nothing
	}
	t := statemachine.Task{State: statemachine.State(f["state"]), Outcome: statemachine.State(f["outcome"])}
	p := &Task{
		ID: id, Step: f["step"], Program: f["program"], Input: f["input"], Argv: argv, End: t.End(),
		Needs: task.ParseNeeds(f["needs"]), DoomedBy: number("doomed_by"), Skipped: f["skipped"] == "1",
		Round: int(number("round")), Began: stampAt(f[firstBegan]), Executed: stampAt(f[firstExecuted]), RetryOf: number("retry_of"),
	}
	if f == nil {
		p.End = missing
	}
	return p
}

// stampAt is 0 for what is no moment.
func stampAt(text string) statemachine.Time {
	at, err := statemachine.ParseTime(text)
	if err != nil || at == statemachine.Never {
		return 0
	}
	return at
}

// taskSet is what was read of the tasks of a plan.
type taskSet struct {
	store *store.Store
	ids   func(ctx context.Context, offset, limit int) ([]int64, error)

	listed  int // how many ids of the plan were read
	tasks   map[int64]*Task
	added   []*Task         // in the order in which they were added, also those that were retried
	retries map[int64]int64 // of those the one that repeats each
}

func (v *View) newSet() *taskSet {
	return &taskSet{
		store: v.Store, tasks: map[int64]*Task{}, retries: map[int64]int64{},
		ids: func(ctx context.Context, offset, limit int) ([]int64, error) {
			return v.Store.PlanTasks(ctx, v.Plan, offset, limit)
		},
	}
}

// Tasks reads the tasks of the plan, each behind all that it needs. A retry
// stands for what it repeats, also where that is needed.
func (v *View) Tasks(ctx context.Context) ([]*Task, error) {
	set := v.newSet()
	for {
		more, err := set.grow(ctx)
		if err != nil {
			return nil, fmt.Errorf("read plan %d: %w", v.Plan, err)
		}
		if !more {
			return set.sorted(), nil
		}
	}
}

// grow reads a page of tasks that were added; false if there was none.
func (set *taskSet) grow(ctx context.Context) (bool, error) {
	ids, err := set.ids(ctx, set.listed, page)
	if err != nil || len(ids) == 0 {
		return false, err
	}
	if err := set.read(ctx, ids); err != nil {
		return false, err
	}
	set.listed += len(ids)
	return true, nil
}

// read reads tasks, also such as were read before.
func (set *taskSet) read(ctx context.Context, ids []int64) error {
	found, err := set.store.Fields(ctx, ids, taskFields...)
	if err != nil {
		return fmt.Errorf("read tasks: %w", err)
	}
	later := map[int][]int64{} // those in a later round, whose stamps have other names
	for i, f := range found {
		t := set.tasks[ids[i]]
		if t == nil {
			t = &Task{}
			set.tasks[ids[i]] = t
			set.added = append(set.added, t)
		}
		*t = *taskOf(ids[i], f)
		if t.Round > 0 {
			later[t.Round] = append(later[t.Round], t.ID)
		}
		if next, err := strconv.ParseInt(f["retried_by"], 10, 64); err == nil && next > t.ID { // a retry is always newer
			set.retries[t.ID] = next
		}
		if t.RetryOf > 0 && t.RetryOf < t.ID {
			set.retries[t.RetryOf] = t.ID
		}
	}
	return set.readStamps(ctx, later)
}

// readStamps reads the stamps of the rounds in which tasks are.
func (set *taskSet) readStamps(ctx context.Context, rounds map[int][]int64) error {
	for round, ids := range rounds {
		began, executed := statemachine.RoundField(round, beganStamp), statemachine.RoundField(round, executedStamp)
		found, err := set.store.Fields(ctx, ids, began, executed)
		if err != nil {
			return fmt.Errorf("read rounds: %w", err)
		}
		for i, f := range found {
			t := set.tasks[ids[i]]
			t.Began, t.Executed = stampAt(f[began]), stampAt(f[executed])
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
		step, _, _ := strings.Cut(t.Step, "[")
		node := critical.Task{Step: step, Program: t.Program, Needs: make([]task.Need, 0, len(t.Needs))}
		for _, n := range t.Needs {
			if at, there := place[n.Task]; there {
				node.Needs = append(node.Needs, task.Need{Index: at, On: n.On})
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
