package server

import (
	"testing"
	"time"
)

// Only passes that moved something are followed by a rest, which is bounded.
func TestRestAfterPass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		moved      int
		took, want time.Duration
	}{{0, time.Second, 0}, {1, time.Millisecond, 3 * time.Millisecond}, {40, time.Second, mostRest}} {
		if got := restAfter(c.moved, c.took); got != c.want {
			t.Errorf("after %d moves in %v: %v, want %v", c.moved, c.took, got, c.want)
		}
	}
}
