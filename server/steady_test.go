package server

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/timing"
	"github.com/tdf-go/tdf/statemachine"
)

// twoClocks is a steady with a lease of 12 s whose clocks the test moves.
type twoClocks struct {
	*steady
	own   time.Time
	redis statemachine.Time
	said  []string
}

func newTwoClocks() *twoClocks {
	c := &twoClocks{own: time.Unix(1000, 0), redis: epoch}
	c.steady = newSteady(12*time.Second, func(reason string, wait time.Duration) {
		c.said = append(c.said, fmt.Sprint(wait, " ", reason))
	})
	c.now = func() time.Time { return c.own }
	return c
}

// pass lets d pass on both clocks, with an answer of Redis each second and at
// the end.
func (c *twoClocks) pass(d time.Duration) {
	for ; d > 0; d -= time.Second {
		c.skip(min(d, time.Second))
		c.answered(c.redis)
	}
}

// skip lets d pass without an answer.
func (c *twoClocks) skip(d time.Duration) {
	c.own = c.own.Add(d)
	c.redis = c.redis.Add(timing.FromStd(d))
}

func (c *twoClocks) check(t *testing.T, want time.Duration, said ...string) {
	t.Helper()
	if got := c.wait(); got != want {
		t.Errorf("verdicts wait for %v, want %v", got, want)
	}
	if !slices.Equal(c.said, said) {
		t.Errorf("said %q, want %q", c.said, said)
	}
	c.said = nil
}

// begun has had contact for more than a lease.
func begun(t *testing.T) *twoClocks {
	t.Helper()
	c := newTwoClocks()
	c.answered(c.redis)
	c.pass(20 * time.Second)
	c.check(t, 0, "12s "+reasonStart)
	return c
}

func TestSteadyAfterStart(t *testing.T) {
	t.Parallel()
	c := newTwoClocks()
	c.skip(time.Hour) // before the first answer nothing counts
	c.check(t, 12*time.Second)
	c.answered(c.redis)
	c.check(t, 12*time.Second, "12s "+reasonStart)
	c.pass(11 * time.Second)
	c.check(t, time.Second)
	c.pass(time.Second)
	c.check(t, 0)
}

func TestSteadyAfterFailure(t *testing.T) {
	t.Parallel()
	c := begun(t)
	for range 3 {
		c.failed()
		c.skip(time.Minute)
		c.check(t, 12*time.Second)
	}
	c.answered(c.redis)
	c.check(t, 12*time.Second, "12s "+reasonAway)
	c.pass(6 * time.Second)
	c.failed() // it flickers: one line is enough
	c.answered(c.redis)
	c.check(t, 12*time.Second)
	c.pass(12 * time.Second)
	c.check(t, 0)
	c.failed()
	c.answered(c.redis)
	c.check(t, 12*time.Second, "12s "+reasonAway)
}

// The first answer after a failure begins the lease, not the failure.
func TestSteadyFailureWithoutAnswer(t *testing.T) {
	t.Parallel()
	c := begun(t)
	c.failed()
	c.skip(time.Hour)
	c.check(t, 12*time.Second)
}

func TestSteadyAfterJump(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{time.Hour, 4001 * time.Millisecond, -4001 * time.Millisecond, -time.Hour} {
		c := begun(t)
		c.redis = c.redis.Add(statemachine.Duration(by.Microseconds()))
		c.answered(c.redis)
		c.check(t, 12*time.Second, "12s "+reasonJump)
		c.pass(12 * time.Second)
		c.check(t, 0)
	}
}

// Small corrections of a clock are none of our business, unless they add up.
func TestSteadySmallJumps(t *testing.T) {
	t.Parallel()
	c := begun(t)
	c.redis = c.redis.Add(3900 * statemachine.Millisecond)
	c.answered(c.redis)
	c.check(t, 0)
	c.pass(30 * time.Second)
	for range 3 {
		c.redis = c.redis.Add(1500 * statemachine.Millisecond)
		c.pass(time.Second)
	}
	c.check(t, 12*time.Second, "12s "+reasonJump)
}

// A slow drift over days never counts as a jump.
func TestSteadyDrift(t *testing.T) {
	t.Parallel()
	c := begun(t)
	for range 4000 {
		c.redis = c.redis.Add(statemachine.Millisecond)
		c.pass(time.Second)
	}
	c.check(t, 0)
}

// A server that was frozen cannot know whether Redis was there meanwhile.
func TestSteadyAfterGap(t *testing.T) {
	t.Parallel()
	c := begun(t)
	c.skip(6 * time.Second)
	c.answered(c.redis)
	c.check(t, 0)
	c.skip(6*time.Second + 1)
	c.answered(c.redis)
	c.check(t, 12*time.Second, "12s "+reasonGap)
}

// Any answer is contact, with or without a time.
func TestSteadyTouched(t *testing.T) {
	t.Parallel()
	c := begun(t)
	for range 5 {
		c.skip(6 * time.Second)
		c.touched()
	}
	c.answered(c.redis)
	c.check(t, 0)
	c.skip(6*time.Second + 1)
	c.touched()
	c.skip(time.Second)
	c.answered(c.redis)
	c.check(t, 12*time.Second, "12s "+reasonGap)
	c.failed()
	c.touched() // only an answer with a time begins anew
	c.check(t, 12*time.Second)
}
