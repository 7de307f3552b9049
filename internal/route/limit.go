package route

import (
	"strconv"
)

// Limit is how many tasks may run at a time. 0 lets nothing new begin; what
// runs goes on.
type Limit int

// NoLimit is the limit that is never reached, written "none" (Disbatch: null).
const NoLimit Limit = -1

const noLimit = "none"

// maxCount is the largest limit, and the largest amount of a resource: beyond
// it is a slip.
const maxCount = 1_000_000_000

// ParseLimit reads a whole number from 0 to 1,000,000,000, or none; null and the
// empty text mean none too. The error has no field name yet.
func ParseLimit(text string) (Limit, error) {
	switch text {
	case "", noLimit, "null":
		return NoLimit, nil
	}
	n, ok := whole(text, 0, maxCount)
	if !ok {
		return 0, bad("", text, "a whole number from 0 to 1000000000, or none; write for example 2, 0 for nothing new, none for no limit")
	}
	return Limit(n), nil
}

// Text is the limit as it is stored and shown: digits, or none.
func (l Limit) Text() string {
	if l < 0 {
		return noLimit
	}
	return strconv.Itoa(int(l))
}

// whole reads plain decimal digits with an optional minus, in their one
// spelling, from least to most.
func whole(text string, least, most int) (int, bool) {
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text || n < least || n > most {
		return 0, false
	}
	return n, true
}
