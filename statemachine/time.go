package statemachine

import (
	"math"
	"strconv"
	"strings"
)

// Time is a moment on Redis' clock: microseconds since 1970, UTC. Integers
// keep comparisons exact where seconds as floating point would not.
type Time int64

// Duration is a length of time in microseconds.
type Duration int64

// Infinity values compare later, or longer, than everything else. In Redis
// and on the command line they are the string "inf".
const (
	Never   Time     = math.MaxInt64
	Forever Duration = math.MaxInt64
)

// Second and Millisecond are lengths of time.
const (
	Millisecond Duration = 1000
	Second      Duration = 1000 * Millisecond
)

// Limit is the maximum value of a counter, or [Unlimited].
type Limit int64

// Unlimited is the limit no counter exceeds, written "inf".
const Unlimited Limit = math.MaxInt64

const infinite = "inf"

// Add returns the moment d after t. Never and Forever absorb, and a sum beyond
// the range is Never.
func (t Time) Add(d Duration) Time {
	if t == Never || d == Forever || (d > 0 && t > Never-Time(d)) {
		return Never
	}
	return t + Time(d)
}

// Sub returns the length of time from u to t.
func (t Time) Sub(u Time) Duration {
	if t == Never {
		return Forever
	}
	return Duration(t - u)
}

// Text returns t as Redis holds it: seconds with six decimals, or "inf".
func (t Time) Text() string {
	if t == Never {
		return infinite
	}
	return formatMicros(int64(t))
}

// Text returns d as Redis holds it: seconds with six decimals, or "inf".
func (d Duration) Text() string {
	if d == Forever {
		return infinite
	}
	return formatMicros(int64(d))
}

// Text returns l as Redis holds it: decimal digits, or "inf".
func (l Limit) Text() string {
	if l == Unlimited {
		return infinite
	}
	return strconv.FormatInt(int64(l), 10)
}

// ParseTime reads seconds since 1970, with any number of decimals (rounded to
// microseconds), or "inf". It returns a *[FieldError] without a field name for
// anything else: negative values, NaN and values beyond the year 9999 included.
func ParseTime(text string) (Time, error) {
	us, err := parseMicros(text, "a time in seconds since 1970, or inf")
	return Time(us), err
}

// ParseDuration reads seconds, with any number of decimals (rounded to
// microseconds), or "inf". Errors are those of [ParseTime].
func ParseDuration(text string) (Duration, error) {
	us, err := parseMicros(text, "a number of seconds, or inf")
	return Duration(us), err
}

// ParseLimit reads a whole number that is not negative, or "inf".
func ParseLimit(text string) (Limit, error) {
	if isInfinite(text) {
		return Unlimited, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, &FieldError{Value: text, Want: "a whole number that is not negative, or inf"}
	}
	return Limit(n), nil
}

func isInfinite(text string) bool {
	t := strings.TrimPrefix(text, "+")
	return t == infinite || strings.EqualFold(t, infinite) || strings.EqualFold(t, "infinity")
}

// maxSeconds is the end of the year 9999; beyond it is a mistake, not a date.
const maxSeconds = 253402300799

// latest is the last moment that can be written and read again, but for Never.
const latest = Time(maxSeconds) * Time(Second)

func parseMicros(text, want string) (int64, error) {
	if us, ok := exactMicros(text); ok {
		return us, nil
	}
	if isInfinite(text) {
		return math.MaxInt64, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	exotic := strings.ContainsAny(text, "xX_")                // Go's literals, no other language's numbers
	if err != nil || exotic || !(f >= 0 && f <= maxSeconds) { // the form is false for NaN
		return 0, &FieldError{Value: text, Want: want}
	}
	return int64(math.Round(f * 1e6)), nil
}

// exactMicros reads plain decimals digit by digit, because a float64 of
// seconds times 1e6 is off by one now and then. Half a microsecond rounds up.
func exactMicros(text string) (us int64, ok bool) {
	whole, frac, _ := strings.Cut(text, ".")
	if len(whole)+len(frac) == 0 || !digits(whole) || !digits(frac) {
		return 0, false
	}
	for i := range len(whole) {
		if us = us*10 + int64(whole[i]-'0'); us >= maxSeconds {
			return 0, false
		}
	}
	for i := range 6 {
		us *= 10
		if i < len(frac) {
			us += int64(frac[i] - '0')
		}
	}
	if len(frac) > 6 && frac[6] >= '5' {
		us++
	}
	return us, true
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

func formatMicros(us int64) string {
	var room [24]byte
	text, abs := room[:0], uint64(us)
	if us < 0 {
		text, abs = append(text, '-'), -abs
	}
	text = append(strconv.AppendUint(text, abs/1e6, 10), ".000000"...)
	for i, frac := len(text)-1, abs%1e6; frac > 0; i, frac = i-1, frac/10 {
		text[i] += byte(frac % 10)
	}
	return string(text)
}

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

// share is f as a part of a whole, from 0 to 1. NaN becomes 0.
func share(f float64) float64 {
	if !(f > 0) { // the form is true for NaN
		return 0
	}
	return min(f, 1)
}
