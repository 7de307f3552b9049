package statemachine_test

import (
	"testing"

	"pgregory.net/rapid"

	sm "github.com/tdf-go/tdf/statemachine"
)

// randomSetup is a world for random histories: the same steps and the same
// assertions as in the exploration, but with limits, times and numbers of
// programs that are too many to explore.
func randomSetup(t *rapid.T) *setup {
	limit := rapid.SampledFrom([]sm.Limit{0, 1, 2, 7, sm.Unlimited})
	actors := work(map[sm.Actor][]sm.Event{
		sm.Manager: {sm.Hold, sm.Unblock, sm.Cancel}, sm.Worker: {sm.Lose},
	})
	return &setup{
		tasks: maxTasks, workers: maxWorkers, servers: maxServers, late: maxLate, claims: maxClaims,
		task: sm.Task{
			StartAfter: sm.Time(rapid.IntRange(0, 3).Draw(t, "start_after")),
			EndBefore:  rapid.SampledFrom([]sm.Time{0, 5, 20, sm.Never}).Draw(t, "end_before"),
			Timeout:    rapid.SampledFrom([]sm.Duration{0, 1, 5, sm.Forever}).Draw(t, "timeout"),
			MaxFails:   limit.Draw(t, "max_fails"), MaxTimeouts: limit.Draw(t, "max_timeouts"), MaxLosses: limit.Draw(t, "max_losses"),
			MaxFaults: limit.Draw(t, "max_faults"),
			Backoff: sm.Backoff{
				Delay: sm.Duration(rapid.IntRange(0, 2).Draw(t, "retry_delay")), Factor: 2, Max: 4,
			},
		},
		grace: sm.Duration(rapid.IntRange(0, 3).Draw(t, "grace")), horizon: 100, by: actors, holds: 3, held: true, excuses: true,
		words: []sm.Duration{0, 2, sm.Forever}, settles: rapid.Bool().Draw(t, "settles"), edits: 3,
	}
}

// TestRandomHistories: whatever happens in whatever order, all promises hold.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := randomSetup(t)
		w := s.first()
		for range rapid.IntRange(1, 150).Draw(t, "length") {
			steps := s.next(&w, nil)
			if len(steps) == 0 { // everything is archived and time is over
				return
			}
			chosen := steps[rapid.IntRange(0, len(steps)-1).Draw(t, "step")]
			t.Log(chosen)
			if chosen.fault != nil {
				t.Fatal(chosen.fault)
			}
			w = chosen.world
			if err := w.checkHolders(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestDecideIsPure: the same question has the same answer, the task stays as it
// is, and what is decided is accepted by the very task it was decided from and
// recognised if it is sent again.
func TestDecideIsPure(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		task := randomTask(t)
		o := sm.Occurrence{
			Event: rapid.SampledFrom(sm.Events()).Draw(t, "event"), Actor: rapid.SampledFrom(sm.Actors()).Draw(t, "actor"),
			Claim: task.Current.Claim, Round: task.Round, Failed: rapid.Bool().Draw(t, "error"),
			Settles: rapid.Bool().Draw(t, "settles"),
			Retry:   rapid.SampledFrom([]sm.Time{0, 0, 7, sm.Never}).Draw(t, "word"),
			Held:    rapid.Bool().Draw(t, "held"), Excused: rapid.Bool().Draw(t, "excused"), Random: rapid.Float64Range(0, 1).Draw(t, "random"),
		}
		if o.Event == sm.Claim {
			o.Claim = "new"
		}
		now := sm.Time(rapid.IntRange(0, 20).Draw(t, "now"))
		move, err := sm.Decide(&task, o, now)
		again, err2 := sm.Decide(&task, o, now)
		if move != again || (err == nil) != (err2 == nil) {
			t.Fatalf("two answers: %+v, %v and %+v, %v", move, err, again, err2)
		}
		if err != nil {
			return
		}
		if o.Event == sm.Cancel && task.StopAsked { // to ask again changes nothing
			if after, result, err := sm.Apply(task, move, now); result != sm.Repeated || err != nil || after.Rev != task.Rev {
				t.Fatalf("%+v: %d, %v", move, result, err)
			}
			return
		}
		after, result, err := sm.Apply(task, move, now)
		if result != sm.Moved || err != nil || after.State != move.End() || after.Rev != task.Rev+1 || after.Round != move.ToRound() {
			t.Fatalf("%+v: %d, %v, %+v", move, result, err, after)
		}
		if _, result, err = sm.Apply(after, move, now+1); result != sm.Repeated || err != nil {
			t.Fatalf("%+v a second time: %d, %v", move, result, err)
		}
	})
}

func randomTask(t *rapid.T) sm.Task {
	small := rapid.IntRange(0, 3)
	task := sm.Task{
		ID: 1, State: rapid.SampledFrom(append(sm.States(), sm.None)).Draw(t, "state"),
		Rev: rapid.Int64Range(0, 99).Draw(t, "rev"), AtOnce: rapid.Bool().Draw(t, "at once"), Fails: small.Draw(t, "fails"), Timeouts: small.Draw(t, "timeouts"),
		Losses: small.Draw(t, "losses"), MaxFails: sm.Limit(small.Draw(t, "max_fails")),
		MaxTimeouts: sm.Limit(small.Draw(t, "max_timeouts")), MaxLosses: sm.Limit(small.Draw(t, "max_losses")),
		EndBefore: sm.Time(rapid.IntRange(0, 20).Draw(t, "end_before")), Timeout: sm.Duration(small.Draw(t, "timeout")),
	}
	task.Faults, task.MaxFaults = small.Draw(t, "faults"), sm.Limit(small.Draw(t, "max_faults"))
	task.NotBefore, task.Backoff = sm.Time(small.Draw(t, "not_before")), sm.Backoff{Delay: sm.Duration(small.Draw(t, "retry_delay"))}
	for range small.Draw(t, "round") {
		task.Past = append(task.Past, sm.Round{Claim: "old"})
		task.Round++
	}
	if task.State != sm.Open && task.State != sm.Blocked && task.State != sm.None {
		task.Current = sm.Round{Claim: "c", Running: sm.Time(small.Draw(t, "running"))}
	}
	if task.State == sm.Running || task.State == sm.Executed {
		task.StopAsked = rapid.Bool().Draw(t, "cancel_requested")
	}
	if task.State == sm.Executed {
		task.Current.Executed = sm.Time(rapid.IntRange(3, 20).Draw(t, "executed"))
		task.Current.Failed = rapid.Bool().Draw(t, "failed")
		task.Current.Retry = rapid.SampledFrom([]sm.Time{0, 0, 5, sm.Never}).Draw(t, "retry")
	}
	return task
}
