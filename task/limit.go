package task

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/statemachine"
)

// Limit is how many at most, or how often: [AtMost] some number, or [Unlimited]. The
// zero value says nothing, so that the default counts: in a [Spec] that of its queue,
// elsewhere Unlimited.
type Limit string

// Unlimited is no limit. Records have older words for it, which are read as well:
// "none" for how many run at a time, "inf" for how often something may happen.
const Unlimited Limit = "unlimited"

const (
	noLimit  = "none"
	infinite = "inf"
)

// maxCount is the largest limit, and the largest amount of a resource: beyond
// it is a slip.
const maxCount = 1_000_000_000

// AtMost is the limit n, from 0 to 1,000,000,000. AtMost(0) is not the zero value: it
// allows nothing.
func AtMost(n int) Limit { return Limit(strconv.Itoa(n)) }

// N is the number: math.MaxInt for Unlimited, 0 where nothing is said.
func (l Limit) N() int {
	if l == Unlimited {
		return math.MaxInt
	}
	n, _ := strconv.Atoi(string(l))
	return n
}

// Text is the limit as records have how many run at a time: digits, or none.
func (l Limit) Text() string {
	if l == "" || l == Unlimited {
		return noLimit
	}
	return string(l)
}

// MarshalJSON writes null for no limit.
func (l Limit) MarshalJSON() ([]byte, error) {
	if l == "" || l == Unlimited {
		return []byte("null"), nil
	}
	return json.Marshal(l.N()) //nolint:wrapcheck // it cannot fail
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *Limit) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*l = Unlimited
		return nil
	}
	var n int
	err := json.Unmarshal(text, &n)
	*l = AtMost(n)
	return err //nolint:wrapcheck // it says what belongs there
}

// ParseLimit reads a whole number from 0 to 1,000,000,000, or unlimited; none, null and
// the empty text mean that too. The error has no field name yet.
func ParseLimit(text string) (Limit, error) {
	switch text {
	case "", string(Unlimited), noLimit, "null":
		return Unlimited, nil
	}
	if _, ok := digitsOf(text, 0, maxCount); !ok {
		return "", bad("", text, "a whole number from 0 to 1000000000, or unlimited; write for example 2, or 0 for nothing new")
	}
	return Limit(text), nil
}

// parseCount reads how often something may happen: a whole number from 0 to
// 1,000,000,000, or unlimited; inf means that too. It returns the text of records; its
// error has no field name yet.
func parseCount(text string) (string, error) {
	if text == string(Unlimited) {
		return infinite, nil
	}
	l, err := statemachine.ParseLimit(text)
	if err != nil || l != statemachine.Unlimited && (l > maxCount || text[0] == '+') {
		return "", bad("", text, "a whole number from 0 to 1000000000, or unlimited; write for example 3")
	}
	return l.Text(), nil
}

// countText is how often something may happen as records have it.
func countText(l Limit) string {
	if l == Unlimited {
		return infinite
	}
	return string(l)
}

// countOf reads what countText wrote.
func countOf(text string) Limit {
	if text == infinite {
		return Unlimited
	}
	return Limit(text)
}

// maxPids is the highest limit for processes that a kernel has.
const maxPids = 4 << 20

// within is a whole number from 1 to most, or nothing for 0.
func within(field func(*Spec) *int, most int) kind {
	limits := "from 1 to " + strconv.Itoa(most)
	return bind(kind{name: "whole number", limits: limits, number: true, parse: func(s string) (string, error) {
		n, ok := digitsOf(s, 0, most)
		switch {
		case s == "", n == 0 && ok:
			return "", nil
		case !ok:
			return "", bad("", s, "a whole number "+limits+", or 0 for none")
		}
		return s, nil
	}}, field, strconv.Itoa, func(s string) int {
		n, _ := strconv.Atoi(s) // was parsed
		return n
	})
}

// bytesOf is a size of at least 1 MiB, or nothing for 0.
func bytesOf(field func(*Spec) *int64) kind {
	const least, most = 1 << 20, 1 << 50
	return bind(kind{name: "bytes", limits: "from 1MiB to 1024TiB", number: true, parse: func(s string) (string, error) {
		n, err := clean.Size(s)
		switch {
		case s == "", err == nil && n == 0:
			return "", nil
		case err != nil, n < least, n > most:
			return "", bad("", clean.Line(s, maxShown), "a size from 1MiB to 1024TiB, for example 512MiB, or 0 for none")
		}
		return strconv.FormatInt(n, 10), nil
	}}, field, func(n int64) string { return strconv.FormatInt(n, 10) }, func(s string) int64 {
		n, _ := strconv.ParseInt(s, 10, 64) // was parsed
		return n
	})
}
