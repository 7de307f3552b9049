package statemachine_test

import (
	"errors"
	"fmt"

	sm "github.com/tdf-go/tdf/statemachine"
)

// A decision is a value: it names what it was made from and can be carried out
// later, by somebody else, or in Redis.
func ExampleDecide() {
	task := sm.Task{
		ID: 1, State: sm.Running, Rev: 2, EndBefore: sm.Never,
		Timeout: 10 * sm.Second, MaxTimeouts: 1,
		Current: sm.Round{Claim: "c1", Running: 0},
	}
	look := sm.Occurrence{Event: sm.Deadline, Actor: sm.Server}

	_, err := sm.Decide(&task, look, sm.Time(10*sm.Second))
	fmt.Println(errors.Is(err, sm.ErrNotDue))

	move, err := sm.Decide(&task, look, sm.Time(11*sm.Second))
	fmt.Println(move.Edges(), move.Count, move.ToRound(), err)

	_, err = sm.Decide(&task, sm.Occurrence{Event: sm.Archive, Actor: sm.Manager}, 0)
	fmt.Println(err)
	// Output:
	// true
	// [{running timeout} {timeout open}] timeouts 1 <nil>
	// task 1 is running: a manager cannot archive it
}

// A worker that slept through a re-opening changes nothing, and a report that
// is sent twice is recognised.
func ExampleApply() {
	task := sm.Task{
		ID: 1, State: sm.Running, Rev: 2, EndBefore: sm.Never, MaxLosses: 1,
		Current: sm.Round{Claim: "c1", Running: sm.Time(sm.Second)},
	}
	now := sm.Time(2 * sm.Second)
	report, _ := sm.Decide(&task, sm.Occurrence{Event: sm.Report, Actor: sm.Worker, Claim: "c1"}, now)
	lost, _ := sm.Decide(&task, sm.Occurrence{Event: sm.Lose, Actor: sm.Server}, now)

	executed, result, err := sm.Apply(task, report, now)
	fmt.Println(executed.State, result == sm.Moved, err)
	_, result, err = sm.Apply(executed, report, now)
	fmt.Println(executed.State, result == sm.Repeated, err)

	reopened, _, _ := sm.Apply(task, lost, now)
	_, result, err = sm.Apply(reopened, report, now)
	fmt.Println(reopened.State, result == sm.Refused, err)
	// Output:
	// executed true <nil>
	// executed true <nil>
	// open true stale claim: the round is no longer held by this worker
}

func ExampleParseDuration() {
	d, _ := sm.ParseDuration("1.5")
	fmt.Println(int64(d), d.Text())
	_, err := sm.ParseDuration("-1")
	fmt.Println(err)
	// Output:
	// 1500000 1.500000
	// "-1" is not a number of seconds, or inf
}
