package statemachine_test

import (
	"testing"

	sm "github.com/tdf-go/tdf/statemachine"
)

func FuzzCutRoundField(f *testing.F) {
	for _, name := range []string{"0:open", "12:running", "3:a:b", "03:open", "-1:open", "+1:open", "1:", ":open", "open", "99999999999999999999:x", ""} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		round, field, ok := sm.ParseRoundField(name)
		switch {
		case ok && (round < 0 || field == "" || sm.RoundField(round, field) != name):
			t.Errorf("%q was cut into %d and %q", name, round, field)
		case !ok && (round != 0 || field != ""):
			t.Errorf("%q was refused with %d and %q", name, round, field)
		}
		if name == "" {
			return
		}
		round, field, ok = sm.ParseRoundField(sm.RoundField(len(name), name))
		if !ok || round != len(name) || field != name {
			t.Errorf("field %q came back as %d, %q, %v", name, round, field, ok)
		}
	})
}

func TestCutRoundFieldRefuses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"03:open", "-1:open", "+1:open", "1:", ":open", "open", "1", "", "99999999999999999999:x", "1 :x"} {
		if round, field, ok := sm.ParseRoundField(name); ok {
			t.Errorf("%q was cut into %d and %q", name, round, field)
		}
	}
}

func TestClaimMove(t *testing.T) {
	t.Parallel()
	if from, to := sm.ClaimMove(); from != sm.Open || to != sm.Running {
		t.Errorf("a claim moves from %s to %s", from, to)
	}
}

func TestCounterEnd(t *testing.T) {
	t.Parallel()
	want := map[sm.Counter]sm.State{sm.Fails: sm.Failed, sm.Timeouts: sm.TimedOut, sm.Losses: sm.Orphaned, sm.Releases: sm.None, sm.Faults: sm.Failed, "": sm.None}
	for c, end := range want {
		if got := c.End(); got != end {
			t.Errorf("%q beyond its limit ends a task as %q, want %q", c, got, end)
		}
	}
}

func TestTaskBooks(t *testing.T) {
	t.Parallel()
	task := sm.Task{
		State: sm.Archived, Outcome: sm.Orphaned, Fails: 1, Timeouts: 2, Losses: 4, Releases: 8, Faults: 16,
		MaxFails: 10, MaxTimeouts: 20, MaxLosses: 40, MaxFaults: 80,
	}
	if task.End() != sm.Orphaned || task.Ends() != 31 {
		t.Errorf("ended %s after %d rounds", task.End(), task.Ends())
	}
	for c, want := range map[sm.Counter][2]int64{
		sm.Fails: {1, 10}, sm.Timeouts: {2, 20}, sm.Losses: {4, 40}, sm.Releases: {8, int64(sm.Unlimited)}, sm.Faults: {16, 80}, "": {0, int64(sm.Unlimited)},
	} {
		if got := [2]int64{int64(task.Counted(c)), int64(task.Limit(c))}; got != want {
			t.Errorf("%q: %d of %d, want %d of %d", c, got[0], got[1], want[0], want[1])
		}
	}
	task.State = sm.Running
	if task.End() != sm.Running {
		t.Errorf("a running task ended %s", task.End())
	}
}

// A task is due at the later of its two beginnings.
func TestDue(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]sm.Time{{0, 0, 0}, {5, 0, 5}, {5, 7, 7}, {7, 5, 7}, {0, 7, 7}} {
		task := sm.Task{StartAfter: c[0], NotBefore: c[1]}
		if got := task.Due(); got != c[2] {
			t.Errorf("start_after %d, not_before %d: due %d", c[0], c[1], got)
		}
	}
}

// RoundEnd is for workers what Deadline is for servers, without end_before.
func TestRoundEnd(t *testing.T) {
	t.Parallel()
	task := sm.Task{State: sm.Running, EndBefore: 12, Timeout: 5, Current: sm.Round{Claim: "c", Running: 10}}
	foreign := task
	foreign.Current.Claim = ""
	later := task
	later.Current.Begun = 11
	forever := task
	forever.Timeout = sm.Forever
	for name, c := range map[string]struct{ got, want sm.Time }{
		"without grace": {task.RoundEnd(0), 15}, "with grace": {task.RoundEnd(3), 18},
		"begun later": {later.RoundEnd(0), 16}, "foreign": {foreign.RoundEnd(3), 15}, "no timeout": {forever.RoundEnd(3), sm.Never},
		"deadline": {task.Deadline(0), 12}, "deadline without timeout": {forever.Deadline(0), 12},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", name, c.got, c.want)
		}
	}
}
