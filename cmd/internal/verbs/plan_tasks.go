package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// planned is a task of a plan, as a list of them shows it.
type planned struct {
	id             int64
	step           string // what it is called in the plan, empty for nothing
	program, input string
	end            statemachine.State // the state it is in if it has not ended
	needs          []store.Need
	doomedBy       int64
	skipped        bool

	// round is the round it is in; began and executed are its stamps, 0 for none.
	round           int
	began, executed statemachine.Time
	retryOf         int64
}

// missing stands for the state of a task whose record is not there.
const missing statemachine.State = "missing"

// state is for people: a skipped task is no cancelled one.
func (t *planned) state() string {
	if t.skipped {
		return "skipped"
	}
	return string(t.end)
}

// name is what the task is called: its step, with its program where that has another name.
func (t *planned) name() string {
	step, _, _ := strings.Cut(t.step, "[")
	switch step {
	case "":
		return t.program
	case t.program:
		return t.step
	default:
		return t.step + " (" + t.program + ")"
	}
}

// Stamps of a round, and the fields they have in the first one.
var (
	beganStamp    = string(statemachine.Running)
	executedStamp = string(statemachine.Executed)
	firstBegan    = statemachine.RoundField(0, beganStamp)
	firstExecuted = statemachine.RoundField(0, executedStamp)
)

// plannedFields are the fields of a task that are read for it.
var plannedFields = []string{
	programField, inputField, argvField, stateField, "outcome", "needs", "doomed_by", "skipped", "retried_by", "retry_of", stepField,
	roundField, firstBegan, firstExecuted,
}

func plannedOf(id int64, f map[string]string) *planned {
	number := func(name string) int64 { n, _ := strconv.ParseInt(f[name], 10, 64); return n }
	var argv []string
	if text := f[argvField]; text != "" {
		_ = json.Unmarshal([]byte(text), &argv) // what is damaged is shown as nothing
	}
	t := statemachine.Task{State: statemachine.State(f[stateField]), Outcome: statemachine.State(f["outcome"])}
	p := &planned{
		id: id, step: f[stepField], program: f[programField], input: inputText(f[inputField], argv), end: t.End(),
		needs: store.ParseNeeds(f["needs"]), doomedBy: number("doomed_by"), skipped: f["skipped"] == "1",
		round: int(number(roundField)), began: stampAt(f[firstBegan]), executed: stampAt(f[firstExecuted]), retryOf: number("retry_of"),
	}
	if f == nil {
		p.end = missing
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

// plannedSet is what was read of the tasks of a plan.
type plannedSet struct {
	store *store.Store
	ids   func(ctx context.Context, offset, limit int) ([]int64, error)

	listed  int // so many of the ids of the plan were read
	tasks   map[int64]*planned
	added   []*planned      // in the order in which they were added, also those that were retried
	retries map[int64]int64 // of those the one that repeats each
}

func (s *session) newPlannedSet(plan int64) *plannedSet {
	return &plannedSet{
		store: s.store, tasks: map[int64]*planned{}, retries: map[int64]int64{},
		ids: func(ctx context.Context, offset, limit int) ([]int64, error) {
			return s.manager.PlanTasks(ctx, plan, offset, limit)
		},
	}
}

// plannedTasks reads the tasks of a plan, each behind all that it needs. A retry
// stands for what it repeats, also where that is needed.
func (s *session) plannedTasks(ctx context.Context, plan int64) ([]*planned, error) {
	set := s.newPlannedSet(plan)
	for {
		more, err := set.grow(ctx)
		if err != nil {
			return nil, fmt.Errorf("read plan %d: %w", plan, err)
		}
		if !more {
			return set.sorted(), nil
		}
	}
}

// grow reads a page of tasks that were added; false if there was none.
func (set *plannedSet) grow(ctx context.Context) (bool, error) {
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
func (set *plannedSet) read(ctx context.Context, ids []int64) error {
	found, err := set.store.Fields(ctx, ids, plannedFields...)
	if err != nil {
		return fmt.Errorf("read tasks: %w", err)
	}
	later := map[int][]int64{} // those in a later round, whose stamps have other names
	for i, f := range found {
		t := set.tasks[ids[i]]
		if t == nil {
			t = &planned{}
			set.tasks[ids[i]] = t
			set.added = append(set.added, t)
		}
		*t = *plannedOf(ids[i], f)
		if t.round > 0 {
			later[t.round] = append(later[t.round], t.id)
		}
		if next, err := strconv.ParseInt(f["retried_by"], 10, 64); err == nil && next > t.id { // a retry is always newer
			set.retries[t.id] = next
		}
		if t.retryOf > 0 && t.retryOf < t.id {
			set.retries[t.retryOf] = t.id
		}
	}
	return set.readStamps(ctx, later)
}

// readStamps reads the stamps of the rounds in which tasks are.
func (set *plannedSet) readStamps(ctx context.Context, rounds map[int][]int64) error {
	for round, ids := range rounds {
		began, executed := statemachine.RoundField(round, beganStamp), statemachine.RoundField(round, executedStamp)
		found, err := set.store.Fields(ctx, ids, began, executed)
		if err != nil {
			return fmt.Errorf("read rounds: %w", err)
		}
		for i, f := range found {
			t := set.tasks[ids[i]]
			t.began, t.executed = stampAt(f[began]), stampAt(f[executed])
		}
	}
	return nil
}

// sorted are the tasks, each behind what it needs, without those that were retried: a
// retry was added after those that need it.
func (set *plannedSet) sorted() []*planned {
	left := map[int64]*planned{}
	for _, t := range set.added {
		if set.retries[t.id] == 0 {
			left[t.id] = t
		}
	}
	sorted := make([]*planned, 0, len(left))
	var visit func(t *planned)
	visit = func(t *planned) {
		delete(left, t.id)
		for i := range t.needs {
			need := &t.needs[i]
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
		if left[t.id] != nil {
			visit(t)
		}
	}
	return sorted
}

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

// stepsToOpen says of how many steps not all tasks are there: "2 steps are not opened yet", "1 step was not opened".
func stepsToOpen(p *manager.Plan) string {
	one, more := "1 step is not opened yet", "%d steps are not opened yet"
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
		return ", without the steps that are not opened yet"
	}
	return ""
}
