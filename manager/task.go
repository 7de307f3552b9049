package manager

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
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
	// Log tells what happened to the task, one line each.
	Log string
	// Fields are all hash fields as they stand in Redis.
	Fields map[string]string
	// Err matches ErrDamaged if the record is spoilt; then only ID and Fields
	// can be relied on.
	Err error
}

// Round is the record of one round of a task.
type Round struct {
	Number int
	// Worker is the name of the worker that ran it.
	Worker string
	// Output and Error are what the program wrote to stdout and stderr; Error is
	// also where TDF itself says what went wrong.
	Output, Error string
	// ExitCode is the exit code as text, empty if the program did not exit.
	ExitCode string
	// Stamps are the moments of the round by name: "open", "running", "executed",
	// "failure", "timeout" and the outcomes.
	Stamps map[string]statemachine.Time
}

func newTask(t *store.Task) *Task {
	return &Task{
		Task: t.Task, Program: t.Program, Source: t.Source, Input: t.Input, Argv: t.Argv,
		FailOn: t.FailOn, Log: t.Log, Fields: t.Fields, Err: t.Err,
	}
}

// Rounds returns the record of every round, the first one first.
func (t *Task) Rounds() []Round {
	full := store.Task{Fields: t.Fields}
	numbers := t.roundNumbers()
	rounds := make([]Round, len(numbers))
	for i, n := range numbers {
		rounds[i] = Round(full.Round(n))
	}
	return rounds
}

// roundNumbers are those that have a field.
func (t *Task) roundNumbers() []int {
	seen := map[int]bool{}
	var numbers []int
	for field := range t.Fields {
		prefix, _, ok := strings.Cut(field, ":")
		n, err := strconv.Atoi(prefix)
		if ok && err == nil && n >= 0 && !seen[n] {
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
func (t *Task) EndState() statemachine.State { return endState(t.State, t.Outcome) }

func endState(state, outcome statemachine.State) statemachine.State {
	switch {
	case state == statemachine.Archived:
		return outcome
	case state.Ended():
		return state
	default:
		return statemachine.None
	}
}
