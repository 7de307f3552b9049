package timing

import (
	"math/rand/v2"
	"time"
)

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
