package worker

import (
	"context"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
)

// redisClock estimates the time of Redis: an answer's time and the monotonic
// time since then. The way of the answer makes it late, never early.
type redisClock struct {
	answer statemachine.Time
	read   time.Time
}

func newClock(answer statemachine.Time) redisClock {
	return redisClock{answer: answer, read: time.Now()}
}

func (c redisClock) now() statemachine.Time { return c.answer.Add(timing.FromStd(time.Since(c.read))) }

// farAway is beyond what a timer of the system can count.
const farAway = statemachine.Duration(200*365*24*3600) * statemachine.Second

// until is how long it takes until t; ok is false for never.
func (c redisClock) until(t statemachine.Time) (d time.Duration, ok bool) {
	left := t.Sub(c.now())
	if t == statemachine.Never || left > farAway {
		return 0, false
	}
	return max(0, timing.ToStd(left)), true
}

// outlive returns a context that is done at the latest d after ctx.
func outlive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(d, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() {
		stop()
		cancel()
	}
}
