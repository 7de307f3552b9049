// Package timing has what every loop of TDF needs of time: a pause that ends
// with a context, the way between the system's durations and those of the
// rules, and a backoff.
package timing

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// Pause waits for d; false means that ctx ended first, or had ended already.
func Pause(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Backoff gives the pauses between tries of something that fails: each twice
// as long as the one before, from First to Most, less up to a half by chance,
// so that many who failed together do not come back together. It is not safe
// for concurrent use.
type Backoff struct {
	// First and Most bound the pauses before chance; First 0 means no pause.
	First, Most time.Duration

	last time.Duration
}

// Next returns the next pause.
func (b *Backoff) Next() time.Duration {
	switch {
	case b.last == 0:
		b.last = min(b.First, b.Most)
	case b.last > b.Most/2: // doubled it could overflow
		b.last = b.Most
	default:
		b.last *= 2
	}
	return Jitter(b.last)
}

// Reset is called after a success: the next pause is a first one.
func (b *Backoff) Reset() { b.last = 0 }

// Jitter returns d less up to a half of it by chance.
func Jitter(d time.Duration) time.Duration {
	if d < 2 {
		return d
	}
	return d - rand.N(d/2)
}

// longest is the largest duration of the system, about 292 years, which stands
// for ever.
const longest time.Duration = math.MaxInt64

// FromStd turns a duration of the system into one of the rules, which counts
// microseconds. The longest one becomes Forever, and less than a microsecond
// but not 0 becomes one: no wait may turn into none.
func FromStd(d time.Duration) statemachine.Duration {
	switch {
	case d == longest:
		return statemachine.Forever
	case d > 0:
		return max(1, statemachine.Duration(d.Microseconds()))
	default:
		return statemachine.Duration(d.Microseconds())
	}
}

// ToStd is the way back. What the system cannot count becomes the longest
// duration it can, with the same sign.
func ToStd(d statemachine.Duration) time.Duration {
	const most = statemachine.Duration(longest / time.Microsecond)
	switch {
	case d > most:
		return longest
	case d < -most:
		return -longest
	default:
		return time.Duration(d) * time.Microsecond
	}
}
