package route

import (
	"strconv"

	"github.com/tdf-go/tdf/statemachine"
)

// Limit is how many tasks may run at a time. 0 lets nothing new begin; what
// runs goes on.
type Limit int

// NoLimit is the limit that is never reached, "none" in records (Disbatch: null).
const NoLimit Limit = -1

const noLimit = "none"

// Unlimited is the word of people for no limit, whatever is counted. Records have
// older words for it, which are read as well: "none" for how many run at a time,
// "inf" for how often something may happen.
const Unlimited = "unlimited"

// maxCount is the largest limit, and the largest amount of a resource: beyond
// it is a slip.
const maxCount = 1_000_000_000

// ParseLimit reads a whole number from 0 to 1,000,000,000, or unlimited; none, null and
// the empty text mean that too. The error has no field name yet.
func ParseLimit(text string) (Limit, error) {
	switch text {
	case "", Unlimited, noLimit, "null":
		return NoLimit, nil
	}
	n, ok := whole(text, 0, maxCount)
	if !ok {
		return 0, bad("", text, "a whole number from 0 to 1000000000, or unlimited; write for example 2, or 0 for nothing new")
	}
	return Limit(n), nil
}

// ParseCount reads how often something may happen: a whole number from 0 to
// 1,000,000,000, or unlimited; inf means that too. The error has no field name yet.
func ParseCount(text string) (statemachine.Limit, error) {
	if text == Unlimited {
		return statemachine.Unlimited, nil
	}
	l, err := statemachine.ParseLimit(text)
	if err != nil || l > maxCount && l != statemachine.Unlimited {
		return 0, bad("", text, "a whole number from 0 to 1000000000, or unlimited; write for example 3")
	}
	return l, nil
}

// Text is the limit as it is stored: digits, or none.
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
