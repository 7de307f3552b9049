package config

import (
	"cmp"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/task"
)

// infinite is how a time without end, or a bound that does not bind, is written.
const infinite = "inf"

// from writes the limits of a number, for the reference and for remedies.
func from(least, most string) string { return "from " + least + " to " + most }

// between refuses a value below least or above most.
func between[T cmp.Ordered](v, least, most T, remedy string) (T, error) {
	if v < least || v > most {
		return v, invalid("out of range", remedy)
	}
	return v, nil
}

// integer takes a whole number from least to most.
func integer(into *int, least, most int) value {
	limits := from(strconv.Itoa(least), strconv.Itoa(most))
	remedy := "write a whole number " + limits
	return of(into, "whole number", limits, func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, invalid("not a whole number"+commentHint(s), remedy)
		}
		return between(n, least, most, remedy) // too large a number is the largest
	})
}

// factor takes a number from least to most.
func factor(into *float64, least, most float64) value {
	limits := from(numberText(least), numberText(most))
	remedy := "write a number " + limits
	return of(into, "number", limits, func(s string) (float64, error) {
		f, err := parseNumber(s)
		if err != nil {
			problem, _ := explain(err)
			return 0, invalid(problem, remedy)
		}
		return between(f, least, most, remedy)
	})
}

// seconds takes a finite duration from least to most.
func seconds(into *time.Duration, least, most time.Duration) value {
	limits := from(secondsText(least), secondsText(most))
	return of(into, "seconds", limits, func(s string) (time.Duration, error) {
		d, err := parseDuration(s)
		if err != nil {
			return 0, err
		}
		return between(d, least, most, "write seconds "+limits)
	})
}

// bound is seconds, or inf for 0, which means no bound.
func bound(into *time.Duration, least, most time.Duration) value {
	v := seconds(into, least, most)
	v.limits += ", or " + infinite
	finite := v.parse
	v.parse = func(s string) error {
		if n, err := parseNumber(s); err == nil && math.IsInf(n, 1) {
			*into = 0
			return nil
		}
		err := finite(s)
		if err != nil {
			problem, remedy := explain(err)
			return invalid(problem, remedy+", or "+infinite)
		}
		return nil
	}
	return v
}

// size takes a number of bytes from least to most.
func size(into *int64, least, most int64) value {
	limits := from(clean.SizeText(least), clean.SizeText(most))
	return of(into, "size", limits, func(s string) (int64, error) {
		n, err := parseSize(s)
		if err != nil {
			return 0, err
		}
		return between(n, least, most, "write a size "+limits+", for example "+clean.SizeText(max(least, mib)))
	})
}

// orNone lets the word unlimited stand for the number that means it.
func orNone(v value, number string) value {
	v.limits += ", or " + string(task.Unlimited)
	parse := v.parse
	v.parse = func(s string) error {
		if s == string(task.Unlimited) {
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

// parseDuration reads seconds ("1.3") or a Go duration ("1.3s", "5m"). It
// refuses negative, infinite and too long ones.
func parseDuration(s string) (time.Duration, error) {
	const remedy = "write seconds, for example 1.3, or a duration such as 1.3s or 5m"
	n, err := parseNumber(s)
	if err != nil {
		problem, _ := explain(err)
		d, err := time.ParseDuration(s)
		switch {
		case err != nil && strings.HasPrefix(problem, notNumber):
			return 0, invalid("not a duration"+commentHint(s), remedy)
		case err != nil:
			return 0, invalid(problem, remedy)
		case d < 0:
			return 0, invalid("negative", remedy)
		}
		return d, nil
	}
	switch {
	case math.IsInf(n, 0):
		return 0, invalid("infinite, which is not allowed here", remedy)
	case n < 0:
		return 0, invalid("negative", remedy)
	case n >= math.MaxInt64/1e9:
		return 0, invalid("too long", remedy)
	}
	return time.Duration(math.Round(n * 1e9)), nil
}

// parseSize reads a number of bytes; see [clean.Size].
func parseSize(s string) (int64, error) {
	n, err := clean.Size(s)
	switch {
	case errors.Is(err, clean.ErrNoSize):
		err = invalid(err.Error()+commentHint(s), remedySize)
	case err != nil:
		err = invalid(err.Error(), remedySize)
	}
	return n, err
}

const remedySize = "write a number of bytes, for example 65536, 64KiB or 1MiB"

const notNumber = "not a number"

// parseNumber reads a decimal number or an infinity, but neither NaN nor Go's
// hexadecimal forms, which other readers of Redis would not understand.
func parseNumber(s string) (float64, error) {
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil && !math.IsInf(n, 0), strings.ContainsAny(s, "xX_"):
		return 0, invalid(notNumber+commentHint(s), "write a number")
	case err != nil:
		return 0, invalid("too large a number", "write a smaller one, or inf")
	case math.IsNaN(n):
		return 0, invalid("NaN is not a usable number", "write a number")
	}
	return n, nil
}

// secondsText writes a duration as plain seconds, the form of the files.
func secondsText(d time.Duration) string {
	return numberText(d.Seconds())
}

func numberText(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
