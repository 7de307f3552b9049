package timing

import (
	"context"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/statemachine"
)

func TestPause(t *testing.T) {
	t.Parallel()
	start := time.Now()
	if !Pause(t.Context(), 20*time.Millisecond) || time.Since(start) < 20*time.Millisecond {
		t.Errorf("ended after %v", time.Since(start))
	}
	ctx, cancel := context.WithCancel(t.Context())
	context.AfterFunc(t.Context(), cancel)
	done := make(chan bool)
	go func() { done <- Pause(ctx, time.Hour) }()
	cancel()
	if <-done {
		t.Error("the end of the context was not seen")
	}
	for _, d := range []time.Duration{-1, 0, 1, time.Hour} {
		if Pause(ctx, d) {
			t.Errorf("a pause of %v after the end", d)
		}
	}
	if !Pause(t.Context(), 0) || !Pause(t.Context(), -time.Hour) {
		t.Error("no pause is no end")
	}
}

func TestConversions(t *testing.T) {
	t.Parallel()
	for std, rules := range map[time.Duration]statemachine.Duration{
		0: 0, time.Microsecond: 1, time.Second: statemachine.Second, -time.Second: -statemachine.Second,
		math.MaxInt64: statemachine.Forever,
	} {
		if got := FromStd(std); got != rules {
			t.Errorf("FromStd(%v) = %d, want %d", std, got, rules)
		}
		if got := ToStd(rules); got != std {
			t.Errorf("ToStd(%d) = %v, want %v", rules, got, std)
		}
	}
	if FromStd(1) != 1 || FromStd(1999) != 1 {
		t.Error("a short wait became none")
	}
	if ToStd(math.MinInt64) != -math.MaxInt64 || ToStd(statemachine.Forever-1) != math.MaxInt64 {
		t.Error("what is too long wraps")
	}
}

// There and back nothing is lost but what is below a microsecond.
func TestConversionsAreInverse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		std := time.Duration(rapid.Int64Range(int64(-longest), int64(longest)-1).Draw(t, "std"))
		if back := ToStd(FromStd(std)); (back - std).Abs() >= time.Microsecond {
			t.Fatalf("%v came back as %v", std, back)
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for _, most := range []time.Duration{2 * time.Second, math.MaxInt64} {
		b := Backoff{First: 100 * time.Millisecond, Most: most}
		for range 2 {
			want := b.First
			for range 80 {
				got := b.Next()
				if got < want/2 || got > want {
					t.Fatalf("pause %v, want %v to %v", got, want/2, want)
				}
				if want > most/2 {
					want = most
				} else {
					want *= 2
				}
			}
			b.Reset()
		}
	}
}

// Chance must really move the pauses, and odd settings must not panic.
func TestBackoffAtTheEdges(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for range 100 {
		seen[Jitter(time.Second)] = true
	}
	if len(seen) < 50 {
		t.Errorf("%d different pauses of 100", len(seen))
	}
	for _, b := range []Backoff{{}, {First: 1, Most: 1}, {First: time.Second}, {First: time.Minute, Most: time.Second}} {
		for range 3 {
			if d := b.Next(); d < 0 || d > b.Most {
				t.Errorf("%+v: %v", b, d)
			}
		}
	}
}
