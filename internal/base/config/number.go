package config

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/task"
)

// infinite is how a time without end, or a bound that does not bind, is written.
const infinite = "inf"

// integer takes a whole number from least to most.
func integer(into *int, least, most int) value {
	limits := "from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
	return value{kind: "whole number", limits: limits, parse: func(s string) *fault {
		n, err := strconv.Atoi(s)
		if err != nil && !strings.Contains(err.Error(), strconv.ErrRange.Error()) {
			return &fault{"not a whole number" + commentHint(s), "write a whole number " + limits}
		}
		if err != nil || n < least || n > most {
			return &fault{"out of range", "write a whole number " + limits}
		}
		*into = n
		return nil
	}}
}

// factor takes a number from least to most.
func factor(into *float64, least, most float64) value {
	short := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	limits := "from " + short(least) + " to " + short(most)
	return value{kind: "number", limits: limits, parse: func(s string) *fault {
		f, wrong := parseNumber(s)
		switch {
		case wrong != nil:
			return &fault{wrong.problem, "write a number " + limits}
		case f < least || f > most:
			return &fault{"out of range", "write a number " + limits}
		}
		*into = f
		return nil
	}}
}

// bound is seconds, or inf for 0, which means no bound.
func bound(into *time.Duration, least, most time.Duration) value {
	v := seconds(into, least, most)
	v.limits += ", or " + infinite
	finite := v.parse
	v.parse = func(s string) *fault {
		if n, wrong := parseNumber(s); wrong == nil && math.IsInf(n, 1) {
			*into = 0
			return nil
		}
		f := finite(s)
		if f != nil {
			f.remedy += ", or " + infinite
		}
		return f
	}
	return v
}

// size takes a number of bytes from least to most.
func size(into *int64, least, most int64) value {
	limits := "from " + sizeText(least) + " to " + sizeText(most)
	return value{kind: "size", limits: limits, parse: func(s string) *fault {
		n, err := ParseSize(s)
		if err != nil {
			return faultOf(err)
		}
		if n < least || n > most {
			return &fault{"out of range", "write a size " + limits + ", for example " + sizeText(max(least, mib))}
		}
		*into = n
		return nil
	}}
}

// orNone lets the word unlimited stand for the number that means it.
func orNone(v value, number string) value {
	v.limits += ", or " + task.UnlimitedText
	parse := v.parse
	v.parse = func(s string) *fault {
		if s == task.UnlimitedText {
			s = number
		}
		return parse(s)
	}
	return v
}

// commentHint explains the commonest cause of an ill-typed value.
func commentHint(s string) string {
	if strings.ContainsAny(s, "#;") {
		return " (a comment needs a line of its own)"
	}
	return ""
}

// ParseDuration reads seconds ("1.3") or a Go duration ("1.3s", "5m"). It
// refuses negative, infinite and too long ones. The error is an *Error with
// Value, Problem and Remedy.
func ParseDuration(s string) (time.Duration, error) {
	refuse := func(problem string) error {
		return &Error{Value: s, Problem: problem, Remedy: "write seconds, for example 1.3, or a duration such as 1.3s or 5m", Err: ErrInvalid}
	}
	n, f := parseNumber(s)
	if f != nil {
		d, err := time.ParseDuration(s)
		switch {
		case err != nil && strings.HasPrefix(f.problem, notNumber):
			return 0, refuse("not a duration" + commentHint(s))
		case err != nil:
			return 0, refuse(f.problem)
		case d < 0:
			return 0, refuse("negative")
		}
		return d, nil
	}
	switch {
	case math.IsInf(n, 0):
		return 0, refuse("infinite, which is not allowed here")
	case n < 0:
		return 0, refuse("negative")
	case n >= math.MaxInt64/1e9:
		return 0, refuse("too long")
	}
	return time.Duration(math.Round(n * 1e9)), nil
}

// ParseSize reads a number of bytes, with a unit if wanted: B, KiB, MiB, GiB,
// TiB (powers of 1024) or kB, MB, GB, TB (powers of 1000). The error is an
// *Error with Value, Problem and Remedy.
func ParseSize(s string) (int64, error) {
	refuse := func(problem string) error {
		return &Error{Value: s, Problem: problem, Remedy: "write a number of bytes, for example 65536, 64KiB or 1MiB", Err: ErrInvalid}
	}
	digits := strings.TrimRight(s, "BbiKkMGTmgt")
	factor, ok := unit(s[len(digits):])
	n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 64)
	if !ok || err != nil {
		return 0, refuse("not a size" + commentHint(s))
	}
	if n > math.MaxInt64/factor {
		return 0, refuse("too large")
	}
	return int64(n * factor), nil
}

func unit(name string) (factor uint64, ok bool) {
	switch name {
	case "", "B":
		return 1, true
	case "kB", "KB":
		return 1e3, true
	case "MB":
		return 1e6, true
	case "GB":
		return 1e9, true
	case "TB":
		return 1e12, true
	case "KiB":
		return kib, true
	case "MiB":
		return mib, true
	case "GiB":
		return gib, true
	case "TiB":
		return tib, true
	default:
		return 0, false
	}
}

const notNumber = "not a number"

// parseNumber reads a decimal number or an infinity, but neither NaN nor Go's
// hexadecimal forms, which other readers of Redis would not understand.
func parseNumber(s string) (float64, *fault) {
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil && !math.IsInf(n, 0), strings.ContainsAny(s, "xX_"):
		return 0, &fault{notNumber + commentHint(s), "write a number"}
	case err != nil:
		return 0, &fault{"too large a number", "write a smaller one, or inf"}
	case math.IsNaN(n):
		return 0, &fault{"NaN is no usable number", "write a number"}
	}
	return n, nil
}

// secondsText writes a duration as plain seconds, the form of the files.
func secondsText(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

// sizeText writes a size with the largest unit that divides it.
func sizeText(n int64) string {
	for _, u := range []struct {
		name   string
		factor int64
	}{{"TiB", tib}, {"GiB", gib}, {"MiB", mib}, {"KiB", kib}} {
		if n >= u.factor && n%u.factor == 0 {
			return strconv.FormatInt(n/u.factor, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
