package storetest

import (
	"slices"
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// Exercise runs the conformance suite: what every Redis that TDF supports must
// do. Each case gets a namespace of its own from space.
func Exercise(t *testing.T, space func(testing.TB) *Space) {
	t.Helper()
	cases := map[string]func(*testing.T, *Space){
		"open":             exerciseOpen,
		"open again":       exerciseOpenAgain,
		"open refused":     exerciseOpenRefused,
		"claim order":      exerciseClaimOrder,
		"claim again":      exerciseClaimAgain,
		"claim not due":    exerciseClaimNotDue,
		"buckets":          exerciseBuckets,
		"life of a task":   exerciseLife,
		"illegal move":     exerciseIllegalMove,
		"stale report":     exerciseStaleReport,
		"repeated report":  exerciseRepeatedReport,
		"batch of moves":   exerciseBatch,
		"due":              exerciseDue,
		"wake-ups":         exerciseWakeUps,
		"changes":          exerciseChanges,
		"flush":            exerciseFlush,
		"damage":           exerciseDamage,
		"relist":           exerciseRelist,
		"managers":         exerciseManagers,
		"notes":            exerciseNotes,
		"long log":         exerciseLongLog,
		"long line":        exerciseLongLine,
		"foreign argument": exerciseArgv,
		"held early":       exerciseHeldEarly,
		"ids taken":        exerciseIDsTaken,
		"register":         exerciseRegister,
		"taken name":       exerciseTakenHolding,
		"former tasks":     exerciseFormer,
		"held tasks":       exerciseHeld,
		"known buckets":    exerciseKnownBuckets,
		"registry":         exerciseRegistry,
		"lost":             exerciseLost,
		"lease":            exerciseLease,
		"held elsewhere":   exerciseHeldElsewhere,
		"unwatched":        exerciseUnwatched,
		"clock set back":   exerciseClockSetBack,
		"orders":           exerciseOrders,
		"interrupt":        exerciseInterrupt,
		"follow":           exerciseFollow,
		"chunks":           exerciseChunks,
		"progress":         exerciseProgress,
		"drop":             exerciseDrop,
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, space(t))
		})
	}
}

// decide asks the table what happens to a task that was read.
func decide(
	t *testing.T, task *statemachine.Task, event statemachine.Event, actor statemachine.Actor, now statemachine.Time,
) statemachine.Move {
	t.Helper()
	m, err := statemachine.Decide(task, statemachine.Occurrence{
		Event: event, Actor: actor, Claim: task.Current.Claim, Round: task.Round,
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (sp *Space) apply(t *testing.T, orders ...store.Order) []store.Outcome {
	t.Helper()
	out, err := sp.Store.Apply(t.Context(), orders...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// move reads a task, decides and applies; the move must be made.
func (sp *Space) move(t *testing.T, id int64, event statemachine.Event, actor statemachine.Actor) {
	t.Helper()
	task := sp.Task(t, id)
	m := decide(t, &task.Task, event, actor, 0)
	if out := sp.apply(t, store.Order{Move: m, Writer: string(actor), Bucket: task.Bucket}); out[0].Result != statemachine.Moved {
		t.Fatalf("%s: %+v", event, out[0])
	}
}

func (sp *Space) state(t *testing.T, id int64, want statemachine.State) {
	t.Helper()
	if got := sp.Task(t, id).Fields["state"]; got != string(want) {
		t.Errorf("task %d: state %q, want %s", id, got, want)
	}
	if in := sp.Sets(t, id); !slices.Equal(in, []statemachine.State{want}) {
		t.Errorf("task %d: listed in %v, want %s", id, in, want)
	}
}

func claimedIDs(tasks []store.Claimed) []int64 {
	ids := make([]int64, len(tasks))
	for i := range tasks {
		ids[i] = tasks[i].ID
	}
	return ids
}
