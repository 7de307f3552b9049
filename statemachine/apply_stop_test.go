package statemachine

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestApplyAskStop: the mark is all that changes, and is set once.
func TestApplyAskStop(t *testing.T) {
	t.Parallel()
	running, _ := held(t)
	cancel := Occurrence{Event: Cancel, Actor: Manager}
	ask := must(t, running, cancel, 5)
	marked, result, err := Apply(running, ask, 5)
	want := running
	want.StopAsked, want.Rev = true, running.Rev+1
	if diff := cmp.Diff(want, marked); diff != "" || result != Moved || err != nil {
		t.Fatalf("%v, %v: %s", result, err, diff)
	}
	executed, _, _ := Apply(marked, must(t, marked, Occurrence{Event: Report, Actor: Worker, Claim: "a"}, 6), 6)
	anew := changed(running) // somebody else changed it, and asked for nothing
	anew.Rev = running.Rev + 1
	for _, c := range []struct {
		name string
		task Task
		m    Move
		want Result
		err  error
	}{
		{"the same again", marked, ask, Repeated, nil},
		{"another look, another cancel", marked, must(t, marked, cancel, 6), Repeated, nil},
		{"a cancel from an older look", changed(marked), ask, Repeated, nil},
		{"marked while it ran, executed since", executed, ask, Refused, ErrConflict},
		{"executed, asked again", executed, must(t, executed, cancel, 6), Repeated, nil},
		{"another change came first", anew, ask, Refused, ErrConflict},
	} {
		got, result, err := Apply(c.task, c.m, 7)
		if result != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, result, err, c.want, c.err)
		}
		if diff := cmp.Diff(c.task, got); diff != "" {
			t.Errorf("%s changed the task: %s", c.name, diff)
		}
	}
}

// TestApplyStopAsked: a worker that did not know is told, and only where it
// would open the task again.
func TestApplyStopAsked(t *testing.T) {
	t.Parallel()
	running, _ := held(t)
	running.MaxTimeouts = 9
	marked := running
	marked.StopAsked, marked.Rev = true, running.Rev+1
	for _, c := range []struct {
		name  string
		event Event
		knows bool
		to    State
		err   error
	}{
		{"hand back", HandBack, false, Running, ErrStopAsked},
		{"hand back, knowing", HandBack, true, Terminated, nil},
		{"overdue", StopOverdue, false, Running, ErrStopAsked},
		{"overdue, knowing", StopOverdue, true, TimedOut, nil},
		{"report", Report, false, Executed, nil},
		{"stop", Terminate, false, Terminated, nil},
	} {
		told := running
		told.StopAsked = c.knows
		m := must(t, told, Occurrence{Event: c.event, Actor: Worker, Claim: "a"}, 9)
		got, _, err := Apply(marked, m, 9)
		if got.State != c.to || !errors.Is(err, c.err) || got.Round != 0 || !got.StopAsked {
			t.Errorf("%s: %s, %v; want %s, %v", c.name, got.State, err, c.to, c.err)
		}
		other := m
		other.Claim = "b"
		if _, _, err := Apply(marked, other, 9); !errors.Is(err, ErrStale) {
			t.Errorf("%s by somebody else: %v", c.name, err)
		}
	}
}

// TestApplyReportKeepsWhatItSays: class, exit code and word about the next round are those of the round.
func TestApplyReportKeepsWhatItSays(t *testing.T) {
	t.Parallel()
	running, _ := held(t)
	o := Occurrence{Event: Report, Actor: Worker, Claim: "a", Failed: true, Class: ClassMemory, ExitCode: 137, HasExit: true, Retry: 9}
	got, _, err := Apply(running, must(t, running, o, 5), 5)
	want := Round{Claim: "a", Running: 4, Executed: 5, Failed: true, Class: ClassMemory, ExitCode: 137, HasExit: true, Retry: 9, End: Report}
	if diff := cmp.Diff(want, got.Current); diff != "" || err != nil {
		t.Error(err, diff)
	}
}
