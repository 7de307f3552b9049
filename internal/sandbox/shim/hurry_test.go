package shim

import (
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// A hard stop that comes before its round, when Kill finds nothing to kill, does
// not turn into a stop with grace.
func TestHurryLeavesNoGrace(t *testing.T) {
	t.Parallel()
	eachLayer(t, func(t *testing.T, s *Slot) {
		m := newMarked(t, `trap '' TERM; echo > ready; while :; do sleep 300; done`)
		p := m.program()
		p.Grace = time.Minute
		p.StopNow = func() bool { return true }
		s.Kill()
		b := begin(t, s, p)
		m.awaitReady(t)
		begun := time.Now()
		b.cancel()
		b.wait(t)
		wait.Within(t, "the end of the round", begun, time.Now(), within)
		if b.err != nil || b.result.Cause != Cancelled {
			t.Errorf("got %+v, %v", b.result, b.err)
		}
		m.expectNone(t, 0)
	})
}

// Without hurry the program has its grace.
func TestGraceWithoutHurry(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	for name, hurry := range map[string]func() bool{"nil": nil, "false": func() bool { return false }} {
		m := newMarked(t, `trap 'exit 7' TERM; echo > ready; while :; do sleep 0.01; done`)
		p := m.program()
		p.Grace, p.StopNow = time.Minute, hurry
		b := begin(t, s, p)
		m.awaitReady(t)
		b.cancel()
		b.wait(t)
		if b.result.ExitCode != 7 || b.result.Cause != Cancelled || b.err != nil {
			t.Errorf("%s: got %+v, %v", name, b.result, b.err)
		}
	}
}
