package server

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
)

// twoClocks is a contactGuard with a lease of 12 s whose clocks the test moves.
type twoClocks struct {
	*contactGuard
	own   time.Time
	redis statemachine.Time
	said  []string
}

func newTwoClocks() *twoClocks {
	c := &twoClocks{own: time.Unix(1000, 0), redis: epoch}
	c.contactGuard = newContactGuard(12*time.Second, func(reason string, wait time.Duration) {
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

// A clock that jumps ends nothing: who was heard of since the lease began to count has
// a later heartbeat by any clock that does not go back.
func TestSteadyAfterJump(t *testing.T) {
	t.Parallel()
	c := begun(t)
	c.redis = c.redis.Add(3600 * statemachine.Second)
	jumped := c.redis
	for range 11 {
		c.pass(time.Second)
		if w, left := c.watched(); left != 0 || w.Until >= jumped || w.Span != 12*statemachine.Second {
			t.Fatalf("watched %+v, %v, since before %s", w, left, jumped.Text())
		}
	}
	c.pass(2 * time.Second)
	if w, left := c.watched(); left != 0 || w.Until < jumped || w.Until > jumped.Add(statemachine.Second) {
		t.Errorf("watched %+v, %v, since %s", w, left, jumped.Text())
	}
}

// What was watched is at least a lease old, and not much older.
func TestSteadyWatched(t *testing.T) {
	t.Parallel()
	c := begun(t)
	for range 1000 {
		c.skip(10 * time.Millisecond)
		c.answered(c.redis)
		w, left := c.watched()
		if old := c.redis.Sub(w.Until); left != 0 || old < 12*statemachine.Second || old > 13*statemachine.Second+120*statemachine.Millisecond {
			t.Fatalf("watched what is %s s old", old.Text())
		}
	}
	if n := len(c.seen); n > 102 {
		t.Errorf("%d readings are kept", n)
	}
	c.rely(20 * time.Second)
	c.check(t, 20*time.Second-c.own.Sub(c.seen[0].own))
}

// A time of the namespace that goes back is that of a Redis that has lost something. A
// little of it may be lost with the last second before a step.
func TestSteadyBehind(t *testing.T) {
	t.Parallel()
	c := begun(t)
	c.redis = c.redis.Add(-4 * statemachine.Second)
	c.answered(c.redis)
	c.check(t, 0)
	c.pass(12 * time.Second)
	c.redis = c.redis.Add(-4*statemachine.Second - 1)
	c.answered(c.redis)
	c.check(t, 12*time.Second, "12s "+reasonBack)
}

// A step is what TIME has gone beyond all that may have passed meanwhile.
func TestSteps(t *testing.T) {
	t.Parallel()
	var s steps
	own, redis := time.Unix(1000, 0), epoch
	for _, c := range []struct{ rest, took, passed, want time.Duration }{
		{0, time.Second, 0, 0},
		{time.Second, 0, time.Second, 0},
		{time.Second, 5 * time.Second, 6 * time.Second, 0}, // wherever in the call it was read
		{time.Second, 0, time.Second, 0},
		{time.Second, 0, -29 * time.Second, -30 * time.Second},
		{time.Second, 0, 31 * time.Second, 30 * time.Second},
		{time.Second, 0, 1900 * time.Millisecond, 0},
	} {
		sent := own.Add(c.rest)
		own, redis = sent.Add(c.took), redis.Add(timing.FromStd(c.passed))
		if got := s.look(sent, own, redis); got != c.want {
			t.Errorf("%+v: stepped by %v", c, got)
		}
	}
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
