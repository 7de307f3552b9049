package statemachine

import "math"

// Backoff is how long a task rests before it is run again after a failure, a
// timeout or a fault. The zero value is no rest at all, as in the TDF document.
type Backoff struct {
	// Delay is the rest after the first of them.
	Delay Duration
	// Max bounds the rest; 0 or [Forever] is no bound.
	Max Duration
	// Factor is by how much each rest is longer than the one before. 0, 1 and
	// everything negative leave it constant.
	Factor float64
	// Jitter, from 0 to 1, is the part of the rest that is left to chance, so
	// that tasks that failed together do not come back together.
	Jitter float64
}

// Pause is the rest after the nth failure, counted from 1: Delay*Factor^(n-1),
// at most Max, less that part of Jitter which random (0 to 1) says. It is never
// negative, and [Forever] if it is too long for a [Duration].
func (b Backoff) Pause(n int, random float64) Duration {
	if b.Delay <= 0 {
		return 0
	}
	rest := float64(b.Delay)
	if b.Factor > 0 && n > 1 {
		rest *= math.Pow(b.Factor, float64(n-1))
	}
	rest = min(rest, float64(b.longest()))
	rest = math.Round(rest - rest*share(b.Jitter)*share(random))
	if rest >= math.MaxInt64 {
		return Forever
	}
	return Duration(rest)
}

func (b Backoff) longest() Duration {
	if b.Max <= 0 {
		return Forever
	}
	return b.Max
}

// share is f as a part of a whole. What is not a number is none of it.
func share(f float64) float64 {
	if !(f > 0) { // the form is true for NaN
		return 0
	}
	return min(f, 1)
}
