package config

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/statemachine"
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

// bound is seconds, or inf for 0, which is none.
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

// timestamp takes unix seconds and keeps their text.
func timestamp(into *string, infinite bool) value {
	limits := "0 or more"
	if infinite {
		limits += ", or inf"
	}
	return value{kind: "unix seconds", limits: limits, parse: func(s string) *fault {
		n, f := parseNumber(s)
		switch {
		case f != nil:
			return &fault{f.problem, "write unix seconds, " + limits}
		case math.IsInf(n, 1) && !infinite:
			return &fault{"infinite, which would never come", "write unix seconds, " + limits}
		case n < 0:
			return &fault{"negative", "write unix seconds, " + limits}
		}
		if _, err := statemachine.ParseTime(keep(s, n)); err != nil {
			return &fault{"no time before the year 10000", "write unix seconds, " + limits}
		}
		*into = keep(s, n)
		return nil
	}}
}

// span takes a duration above 0 or inf and keeps its text in seconds.
func span(into *string) value {
	const limits = "above 0, or inf"
	return value{kind: "seconds", limits: limits, parse: func(s string) *fault {
		if n, f := parseNumber(s); f == nil && math.IsInf(n, 1) {
			*into = infinite
			return nil
		}
		d, err := ParseDuration(s)
		if err != nil {
			return faultOf(err)
		}
		if d < time.Microsecond {
			return &fault{"not above 0 (the shortest is a microsecond)", "write seconds " + limits + "; inf means no limit"}
		}
		*into = s
		if _, f := parseNumber(s); f != nil { // a Go duration, unknown to other readers
			*into = secondsText(d)
		}
		return nil
	}}
}

// orNone lets the word unlimited stand for the number that means it.
func orNone(v value, number string) value {
	v.limits += ", or " + route.Unlimited
	parse := v.parse
	v.parse = func(s string) *fault {
		if s == route.Unlimited {
			s = number
		}
		return parse(s)
	}
	return v
}

// limit takes a count or unlimited and keeps its text, as records have it.
func limit(into *string) value {
	const limits = "0 or more, or " + route.Unlimited
	return value{kind: "whole number", limits: limits, parse: func(s string) *fault {
		if n, f := parseNumber(s); s == route.Unlimited || f == nil && math.IsInf(n, 1) {
			*into = infinite
			return nil
		}
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || strings.HasPrefix(s, "+") {
			return &fault{"not a whole number" + commentHint(s), "write a whole number, " + limits}
		}
		if n < 0 {
			return &fault{"negative", "write a whole number, " + limits}
		}
		*into = s
		return nil
	}}
}

// keep returns the text as written, but one spelling for infinity.
func keep(s string, n float64) string {
	if math.IsInf(n, 1) {
		return infinite
	}
	return s
}

// commentHint explains the commonest cause of an ill-typed value.
func commentHint(s string) string {
	if strings.ContainsAny(s, "#;") {
		return " (a comment needs a line of its own)"
	}
	return ""
}
