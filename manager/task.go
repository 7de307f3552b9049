package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Task is a task as it was when it was read.
type Task struct {
	// Task holds id, state, round, counters, times and limits.
	statemachine.Task
	Program, Source, Input string
	// Argv, if not nil, takes the place of Input.
	Argv []string
	// FailOn is empty (any), FailOnStderr or FailOnExit.
	FailOn string
	// Queue, Env, Labels, Resources and Priority are what decides where and when
	// the task runs; Queue is DefaultQueue where none was named.
	Queue, Env string
	Labels     []string
	Resources  map[string]int
	Priority   int
	// Key made the task unique in its queue; empty for none.
	Key string
	// Created is when the task was opened (Disbatch: ctime); it never changes.
	Created time.Time
	// CancelRequested is when a stop was asked for while a worker held the task,
	// zero if none was; CancelReason says why, also of one that was cancelled.
	CancelRequested time.Time
	CancelReason    string
	// HoldReason is why a blocked task is held.
	HoldReason string
	// RetryOf is the task that this one repeats, RetriedBy the one that repeats
	// it; ReplayOf and ReplayRound are the round that this one is compared with.
	// 0 for none.
	RetryOf, RetriedBy, ReplayOf int64
	ReplayRound                  int
	// Plan is the plan that the task belongs to, 0 for none, and Step what it is called
	// there (see Spec.Step); Needs are the tasks that it
	// waits for, in the order of its arguments. DoomedBy is the task because of which
	// it can never run, 0 for none; Skipped says that this is no failure: it was to
	// run if that one did not succeed.
	Plan     int64
	Step     string
	Needs    []task.Need
	DoomedBy int64
	Skipped  bool
	// Log tells what happened to the task, one line each.
	Log string
	// Fields are all hash fields as they stand in Redis.
	Fields map[string]string
	// Err matches ErrDamaged if the record is spoilt; then only ID and Fields
	// can be relied on.
	Err error
}

func newTask(t *store.Task) *Task {
	return &Task{
		Task: t.Task, Program: t.Program, Source: t.Source, Input: t.Input, Argv: t.Argv,
		FailOn: t.FailOn, Log: t.Log, Fields: t.Fields, Err: t.Err,
		Queue: orText(t.Fields["queue"], DefaultQueue), Env: t.Fields["env"],
		Labels: labelsOf(t.Fields["labels"]), Resources: resourcesOf(t.Fields["resources"]),
		Priority: int(number(t.Fields["priority"])), Key: t.Fields["key"],
		Created:         created(t.Fields),
		CancelRequested: stampOf(t.Fields["cancel_requested"]), CancelReason: t.Fields[cancelReasonField],
		HoldReason: t.Fields[holdField],
		RetryOf:    number(t.Fields[retryOfField]), RetriedBy: number(t.Fields[retriedByField]),
		ReplayOf: number(t.Fields[replayOfField]), ReplayRound: int(number(t.Fields[replayRoundField])),
		Plan: number(t.Fields[planField]), Step: t.Fields[stepField], Needs: task.ParseNeeds(t.Fields[needsField]),
		DoomedBy: number(t.Fields[doomedByField]), Skipped: t.Fields[skippedField] == "1",
	}
}

// ArchivedTask is a task that was archived, made from the fields of its hash: those of a line of the archive that tdf-server and
// tdf-manager export write. A spoilt one has its Err set.
func ArchivedTask(id int64, fields map[string]string) *Task {
	return newTask(store.ArchivedTask(id, fields))
}

// The hash fields that link tasks.
const (
	retryOfField     = "retry_of"
	retriedByField   = "retried_by"
	replayOfField    = "replay_of"
	replayRoundField = "replay_round"
)

// The hash fields of a task in a plan.
const (
	planField     = "plan"
	stepField     = "step"
	needsField    = "needs"
	waitsField    = "waits"
	doomedByField = "doomed_by"
	skippedField  = "skipped"
)

func labelsOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// resourcesOf is what another client may have written; nil for what is none.
func resourcesOf(text string) map[string]int {
	r, err := task.ParseResources(text)
	if err != nil {
		return nil
	}
	return r
}

// stampOf is the zero time for what is no moment.
func stampOf(text string) time.Time {
	t, err := statemachine.ParseTime(text)
	if err != nil || t == statemachine.Never {
		return time.Time{}
	}
	return task.Moment(t)
}

// IdempotencyKey tells this outcome from every other one: it is made of namespace,
// id and round, and is the same in each call of a handler for it. Whoever the
// handler talks to can drop by it what he has done before. Ids begin
// again in a namespace that was flushed, and the keys with them.
func (t *Task) IdempotencyKey() string {
	return fmt.Sprintf("%s:%d:%d", t.Fields["namespace"], t.ID, t.Round)
}

// Rounds returns the record of every round, the first one first.
func (t *Task) Rounds() []Round {
	numbers := t.roundNumbers()
	rounds := make([]Round, len(numbers))
	for i, n := range numbers {
		rounds[i] = newRound(t.Fields, n)
	}
	return rounds
}

// roundNumbers are those that have a field.
func (t *Task) roundNumbers() []int {
	seen := map[int]bool{}
	var numbers []int
	for field := range t.Fields {
		if n, _, ok := statemachine.CutRoundField(field); ok && !seen[n] {
			seen[n] = true
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// Last returns the last round that a worker has begun; its Number is -1 if
// there is none.
func (t *Task) Last() Round {
	for _, r := range slices.Backward(t.Rounds()) {
		if _, begun := r.Stamps[string(statemachine.Running)]; begun {
			return r
		}
	}
	return Round{Number: -1}
}

// Output is what the last round wrote to stdout.
func (t *Task) Output() string { return t.Last().Output }

// EndState is how the task ended, also once it is archived; empty before.
func (t *Task) EndState() statemachine.State {
	if end := t.End(); end.Ended() {
		return end
	}
	return statemachine.None
}

// created is kept apart once a hold or a release has stamped a state again.
func created(fields map[string]string) time.Time {
	if at := stampOf(fields["created"]); !at.IsZero() {
		return at
	}
	opened, blocked := stampOf(fields["0:open"]), stampOf(fields["0:blocked"])
	if opened.IsZero() || !blocked.IsZero() && blocked.Before(opened) {
		return blocked // made on hold, and released since
	}
	return opened
}

// Task reads one task with all its rounds. The error matches [ErrNotFound] if
// there is none with that id; a spoilt one comes with its Err set.
func (m *Manager) Task(ctx context.Context, id int64) (*Task, error) {
	t, err := m.store.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	return newTask(t), nil
}

// Tasks reads tasks with all their rounds, in the order of the ids; nil for
// those that are not there. Outputs can be large: ask for a few at a time.
func (m *Manager) Tasks(ctx context.Context, ids ...int64) ([]*Task, error) {
	found, err := m.store.Tasks(ctx, ids)
	if err != nil {
		return nil, err
	}
	tasks := make([]*Task, len(found))
	for i, t := range found {
		if t != nil {
			tasks[i] = newTask(t)
		}
	}
	return tasks, nil
}

// IDs lists the ids of the tasks in a state, from the given place on, at most
// limit. Those that came into the state first come first.
func (m *Manager) IDs(ctx context.Context, state statemachine.State, offset, limit int) ([]int64, error) {
	return m.store.IDs(ctx, state, int64(offset), int64(limit), false)
}

// Counts are numbers of tasks by state.
type Counts map[statemachine.State]int64

// Count returns the number of tasks in each state, at one moment.
func (m *Manager) Count(ctx context.Context) (Counts, error) {
	c, err := m.store.Count(ctx)
	return Counts(c), err
}

// Total is the number of tasks.
func (c Counts) Total() int64 { return c.sum(func(statemachine.State) bool { return true }) }

// Left is the number of tasks that have not ended: work still to be done.
func (c Counts) Left() int64 {
	return c.sum(func(s statemachine.State) bool { return !s.Settled() })
}

// Unarchived is the number of tasks that no manager has dealt with yet, those
// that have not ended included: what a Stop handler usually waits to be zero.
func (c Counts) Unarchived() int64 {
	return c.sum(func(s statemachine.State) bool { return s != statemachine.Archived })
}

func (c Counts) sum(count func(statemachine.State) bool) int64 {
	var n int64
	for state, k := range c {
		if count(state) {
			n += k
		}
	}
	return n
}

// absent is the error about a task that was not found.
func (m *Manager) absent(ctx context.Context, id int64) error {
	if _, err := m.store.Task(ctx, id); err != nil {
		return err
	}
	return fmt.Errorf("task %d: %w", id, ErrNotFound)
}

// disbatchStatus are Disbatch's numbers for states.
var disbatchStatus = map[statemachine.State]int{
	statemachine.Orphaned: -6, statemachine.Cancelled: -5, statemachine.Blocked: -4, statemachine.Terminated: -3,
	statemachine.Open: -2, statemachine.Running: 0, statemachine.Executed: 0,
	statemachine.Succeeded: 1, statemachine.Failed: 2, statemachine.TimedOut: 3, statemachine.Expired: 4,
}

// disbatchUnknown is Disbatch's status for what is no status.
const disbatchUnknown = 2

// DisbatchStatus is the task's status as Disbatch numbers it: -6 orphaned, -5
// cancelled, -4 blocked, -3 terminated, -2 open, 0 running or executed, 1
// succeeded, 2 failed, 3 timed out, 4 expired; of an archived task, that of its
// outcome. A damaged record is 2, as in Disbatch.
func DisbatchStatus(state, outcome statemachine.State) int {
	status, known := disbatchStatus[(&statemachine.Task{State: state, Outcome: outcome}).End()]
	if !known {
		return disbatchUnknown
	}
	return status
}

// DisbatchStatus is the function of that name for the task.
func (t *Task) DisbatchStatus() int { return DisbatchStatus(t.State, t.Outcome) }

// DisbatchStatus is the function of that name for the task.
func (s *Summary) DisbatchStatus() int { return DisbatchStatus(s.State, s.Outcome) }
