package statemachine

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// must decides and ends the test if the table refuses.
func must(t *testing.T, task Task, o Occurrence, now Time) Move {
	t.Helper()
	m, err := Decide(&task, o, now)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestApply goes through a whole life and compares the task after every move.
func TestApply(t *testing.T) {
	t.Parallel()
	task := Task{ID: 1, EndBefore: Never, Timeout: 5, MaxTimeouts: 1, MaxFails: 1, MaxLosses: 1}
	steps := []struct {
		o    Occurrence
		now  Time
		want Task
	}{
		{Occurrence{Event: Create, Actor: Manager}, 1, Task{State: Open}},
		{Occurrence{Event: Hold, Actor: Manager}, 2, Task{State: Blocked}},
		{Occurrence{Event: Unblock, Actor: Manager}, 3, Task{State: Open}},
		{Occurrence{Event: Claim, Actor: Worker, Claim: "a"}, 4, Task{State: Running, Current: Round{Claim: "a", Running: 4}}},
		{Occurrence{Event: Deadline, Actor: Server}, 10, Task{State: Open, Round: 1, Timeouts: 1}},
		{Occurrence{Event: Claim, Actor: Worker, Claim: "b", Round: 1}, 11, Task{State: Running, Round: 1, Timeouts: 1, Current: Round{Claim: "b", Running: 11}}},
		{Occurrence{Event: HandBack, Actor: Worker, Claim: "b", Round: 1}, 12, Task{State: Open, Round: 2, Timeouts: 1, Releases: 1}},
		{Occurrence{Event: Claim, Actor: Worker, Claim: "c"}, 13, Task{State: Running, Round: 2, Timeouts: 1, Releases: 1, Current: Round{Claim: "c", Running: 13}}},
		{Occurrence{Event: Report, Actor: Worker, Claim: "c", Round: 2, Failed: true}, 14, Task{State: Executed, Round: 2, Timeouts: 1, Releases: 1,
			Current: Round{Claim: "c", Running: 13, Executed: 14, Failed: true, End: Report}}},
		{Occurrence{Event: Settle, Actor: Server}, 15, Task{State: Open, Round: 3, Timeouts: 1, Releases: 1, Fails: 1}},
		{Occurrence{Event: Claim, Actor: Worker}, 16, Task{State: Running, Round: 3, Timeouts: 1, Releases: 1, Fails: 1, Current: Round{Running: 16}}},
		{Occurrence{Event: Lose, Actor: Server}, 17, Task{State: Open, Round: 4, Timeouts: 1, Releases: 1, Fails: 1, Losses: 1}},
		{Occurrence{Event: Cancel, Actor: Manager}, 18, Task{State: Cancelled, Round: 4, Timeouts: 1, Releases: 1, Fails: 1, Losses: 1}},
		{Occurrence{Event: Archive, Actor: Manager}, 19, Task{State: Archived, Round: 4, Timeouts: 1, Releases: 1, Fails: 1, Losses: 1, Outcome: Cancelled}},
	}
	past := []Round{
		{Claim: "a", Running: 4},
		{Claim: "b", Running: 11, End: HandBack},
		{Claim: "c", Running: 13, Executed: 14, Failed: true, End: Report},
		{Running: 16},
	}
	for i, step := range steps {
		before := task
		m := must(t, task, step.o, step.now)
		after, result, err := Apply(task, m, step.now)
		if result != Moved || err != nil {
			t.Fatalf("%s: %v, %v", step.o.Event, result, err)
		}
		if diff := cmp.Diff(before, task); diff != "" {
			t.Fatalf("%s wrote into its argument: %s", step.o.Event, diff)
		}
		want := step.want
		want.ID, want.Rev = 1, int64(i+1)
		want.EndBefore, want.Timeout, want.MaxTimeouts, want.MaxFails, want.MaxLosses = Never, 5, 1, 1, 1
		if want.Round > 0 {
			want.Past = past[:want.Round]
		}
		if diff := cmp.Diff(want, after); diff != "" {
			t.Fatalf("%s: %s", step.o.Event, diff)
		}
		task = after
	}
}

// held is a task that runs under claim "a" since moment 4.
func held(t *testing.T) (Task, Move) {
	task := Task{ID: 1, State: Open, Rev: 1, EndBefore: Never, Timeout: 5, MaxTimeouts: 9, MaxLosses: 9, MaxFails: 9}
	m := must(t, task, Occurrence{Event: Claim, Actor: Worker, Claim: "a"}, 4)
	task, _, _ = Apply(task, m, 4)
	return task, m
}

// changed is a task in the same state and round, two changes later.
func changed(t Task) Task {
	t.Rev += 2
	return t
}

// TestApplyAgain: a move sent twice is recognised, and nobody else's is.
func TestApplyAgain(t *testing.T) {
	t.Parallel()
	running, claim := held(t)
	report := must(t, running, Occurrence{Event: Report, Actor: Worker, Claim: "a"}, 5)
	executed, _, _ := Apply(running, report, 5)
	lose := must(t, running, Occurrence{Event: Lose, Actor: Server}, 5)
	lost, _, _ := Apply(running, lose, 5)
	back := must(t, running, Occurrence{Event: HandBack, Actor: Worker, Claim: "a"}, 5)
	released, _, _ := Apply(running, back, 5)
	short := released
	short.Past = nil

	with := func(m Move, f func(*Move)) Move { f(&m); return m }
	for _, c := range []struct {
		name string
		task Task
		m    Move
		want Result
		err  error
	}{
		{"the claim again", running, claim, Repeated, nil},
		{"another's claim", running, with(claim, func(m *Move) { m.Claim = "b" }), Refused, ErrConflict},
		{"the claim after the report", executed, claim, Refused, ErrConflict},
		{"the claim after the loss", lost, claim, Refused, ErrConflict},
		{"the report again", executed, report, Repeated, nil},
		{"the report again, with another result", executed, with(report, func(m *Move) { m.Failed = true }), Repeated, nil},
		{"another's report", executed, with(report, func(m *Move) { m.Claim = "b" }), Refused, ErrStale},
		{"a report after the loss", lost, report, Refused, ErrStale},
		{"a report after the hand-back", released, report, Refused, ErrStale},
		{"a hand-back after the report", executed, back, Refused, ErrStale},
		{"the hand-back again", released, back, Repeated, nil},
		{"the hand-back again, rounds not read", short, back, Refused, ErrStale},
		{"a report of a round to come", running, with(report, func(m *Move) { m.Round = 9 }), Refused, ErrStale},
		{"a report of a round before the first", running, with(report, func(m *Move) { m.Round = -1 }), Refused, ErrStale},
		{"a report without a claim", running, with(report, func(m *Move) { m.Claim = "" }), Refused, ErrStale},
		{"the loss again", lost, lose, Repeated, nil},
		{"another's report of the same round", running, with(report, func(m *Move) { m.Claim = "b" }), Refused, ErrStale},
		{"the loss after the task has come back to the same place", changed(lost), lose, Refused, ErrConflict},
		{"the loss from an older revision", running, with(lose, func(m *Move) { m.Rev-- }), Refused, ErrConflict},
		{"the loss after the report", executed, lose, Refused, ErrConflict},
	} {
		got, result, err := Apply(c.task, c.m, 6)
		if result != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, result, err, c.want, c.err)
		}
		if diff := cmp.Diff(c.task, got); diff != "" {
			t.Errorf("%s changed the task: %s", c.name, diff)
		}
	}
}

// TestForeignClaimIsNeverARepeat: two foreign workers have no claim ids; the
// second must not be told that the round is its own.
func TestForeignClaimIsNeverARepeat(t *testing.T) {
	t.Parallel()
	task := Task{ID: 1, State: Open, EndBefore: Never}
	m := must(t, task, Occurrence{Event: Claim, Actor: Worker}, 4)
	running, _, _ := Apply(task, m, 4)
	if _, result, err := Apply(running, m, 5); result != Refused || !errors.Is(err, ErrConflict) {
		t.Errorf("the second foreign claim: %v, %v", result, err)
	}
}

// TestApplyKeepsRoundsApart: two copies of a task do not share their rounds.
func TestApplyKeepsRoundsApart(t *testing.T) {
	t.Parallel()
	task, _ := held(t)
	task.Past = slices.Grow([]Round{{Claim: "z"}}, 8)
	task.Round = 1
	lose := must(t, task, Occurrence{Event: Lose, Actor: Server}, 5)
	back := must(t, task, Occurrence{Event: HandBack, Actor: Worker, Claim: "a", Round: 1}, 5)
	one, _, _ := Apply(task, lose, 5)
	two, _, _ := Apply(task, back, 5)
	if one.Past[1].End != "" || two.Past[1].End != HandBack {
		t.Errorf("one round record for two tasks: %v, %v", one.Past[1], two.Past[1])
	}
}
