package manager

import (
	"slices"

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

func newTask(t *store.Task) *Task {
	return &Task{
		Task: t.Task, Program: t.Program, Source: t.Source, Input: t.Input, Argv: t.Argv,
		FailOn: t.FailOn, Log: t.Log, Fields: t.Fields, Err: t.Err,
	}
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
