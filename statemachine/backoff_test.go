package statemachine_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	sm "github.com/tdf-go/tdf/statemachine"
)

func TestPause(t *testing.T) {
	t.Parallel()
	double := sm.Backoff{Delay: sm.Second, Factor: 2}
	capped := sm.Backoff{Delay: sm.Second, Factor: 2, Max: 5 * sm.Second}
	half := sm.Backoff{Delay: sm.Second, Factor: 2, Max: 5 * sm.Second, Jitter: 0.5}
	for name, c := range map[string]struct{ got, want sm.Duration }{
		"none":                    {sm.Backoff{}.Pause(3, 0), 0},
		"negative":                {sm.Backoff{Delay: -1, Factor: 2}.Pause(3, 0), 0},
		"first":                   {double.Pause(1, 0), sm.Second},
		"before the first":        {double.Pause(-3, 0), sm.Second},
		"second":                  {double.Pause(2, 0), 2 * sm.Second},
		"tenth":                   {double.Pause(10, 0), 512 * sm.Second},
		"constant, factor 0":      {sm.Backoff{Delay: 7}.Pause(9, 0), 7},
		"constant, factor 1":      {sm.Backoff{Delay: 7, Factor: 1}.Pause(9, 0), 7},
		"constant, factor -2":     {sm.Backoff{Delay: 7, Factor: -2}.Pause(9, 0), 7},
		"constant, no number":     {sm.Backoff{Delay: 7, Factor: math.NaN()}.Pause(9, 0), 7},
		"below the cap":           {capped.Pause(3, 0), 4 * sm.Second},
		"at the cap":              {capped.Pause(4, 0), 5 * sm.Second},
		"the first above the cap": {sm.Backoff{Delay: 9, Max: 5}.Pause(1, 0), 5},
		"far beyond the cap":      {capped.Pause(math.MaxInt, 0), 5 * sm.Second},
		"no cap":                  {double.Pause(math.MaxInt, 0), sm.Forever},
		"cap forever":             {sm.Backoff{Delay: 1, Factor: 10, Max: sm.Forever}.Pause(100, 0), sm.Forever},
		"no cap, spread":          {sm.Backoff{Delay: 1, Factor: 10, Jitter: 1}.Pause(1000, 1), 0},
		"jitter, none drawn":      {half.Pause(1, 0), sm.Second},
		"jitter, all drawn":       {half.Pause(1, 1), sm.Second / 2},
		"jitter, of the cap":      {half.Pause(9, 0.5), 3750 * sm.Millisecond},
		"jitter beyond 1":         {sm.Backoff{Delay: 8, Jitter: 9}.Pause(1, 9), 0},
		"jitter below 0":          {sm.Backoff{Delay: 8, Jitter: -9}.Pause(1, 1), 8},
		"random below 0":          {sm.Backoff{Delay: 8, Jitter: 1}.Pause(1, -1), 8},
		"random is no number":     {sm.Backoff{Delay: 8, Jitter: 1}.Pause(1, math.NaN()), 8},
		"exact decimals":          {sm.Backoff{Delay: sm.Second, Factor: 1.1}.Pause(4, 0), 1331 * sm.Millisecond},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", name, c.got, c.want)
		}
	}
}

// TestPauseStaysWithin: whatever the numbers are, a rest lies between none and
// the cap, and chance only shortens it.
func TestPauseStaysWithin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := sm.Backoff{
			Delay: sm.Duration(rapid.Int64().Draw(t, "delay")), Max: sm.Duration(rapid.Int64().Draw(t, "max")),
			Factor: rapid.Float64().Draw(t, "factor"), Jitter: rapid.Float64().Draw(t, "jitter"),
		}
		n := rapid.Int().Draw(t, "n")
		whole, got := b.Pause(n, 0), b.Pause(n, rapid.Float64().Draw(t, "random"))
		if got < 0 || got > whole || b.Max > 0 && float64(whole) > float64(b.Max) {
			t.Fatalf("%+v, %d: %d of %d", b, n, got, whole)
		}
	})
}

// TestRestCanBeWritten: a rest that never ends on paper ends with the last
// moment that can be read again, and the rest of the nth failure is the nth.
func TestRestCanBeWritten(t *testing.T) {
	t.Parallel()
	settle := sm.Occurrence{Event: sm.Settle, Actor: sm.Server, Random: 0.5}
	task := sm.Task{
		State: sm.Executed, EndBefore: sm.Never, Fails: 2, MaxFails: sm.Unlimited, Timeouts: 3, Faults: 4, Losses: 50,
		Backoff: sm.Backoff{Delay: 1, Factor: 2, Jitter: 0.5}, Current: sm.Round{Failed: true},
	}
	m, err := sm.Decide(&task, settle, 1000)
	if err != nil || m.NotBefore != 1000+512-128 {
		t.Errorf("the tenth rest ends at %d, %v", m.NotBefore, err)
	}
	after, _, err := sm.Apply(task, m, 1000)
	if err != nil || after.NotBefore != m.NotBefore || after.Due() != m.NotBefore {
		t.Errorf("it became %d, %v", after.NotBefore, err)
	}
	task.Fails = 1000
	m, err = sm.Decide(&task, settle, 1000)
	if err != nil || m.NotBefore != lastMicro {
		t.Errorf("the longest rest ends at %d, %v", m.NotBefore, err)
	}
	if read, err := sm.ParseTime(m.NotBefore.Text()); err != nil || read != m.NotBefore {
		t.Errorf("%s is read %d, %v", m.NotBefore.Text(), read, err)
	}
}

// A shortage of the node is a fault where three in a row were not, or another node
// has one too; a task pays a fault for it, and no failure, whatever it is charged for.
func TestShortage(t *testing.T) {
	t.Parallel()
	//nolint:dupword // the same node again
	for nodes, want := range map[string]bool{"": false, "a": false, "a a": false, "a a a": true, "b": true, "a b": true} {
		if got := sm.ShortageCounts(strings.Fields(nodes), "a"); got != want {
			t.Errorf("after %q: %v", nodes, got)
		}
	}
	task := sm.Task{ID: 1, State: sm.Executed, EndBefore: sm.Never, MaxFaults: 1,
		Current: sm.Round{Claim: "c", Failed: true, Class: sm.ClassShortage}}
	m, err := sm.Decide(&task, sm.Occurrence{Event: sm.Settle, Actor: sm.Server}, 1)
	if err != nil || m.To != sm.Open || m.Count != sm.Faults {
		t.Errorf("got %+v, %v", m, err)
	}
}
