package config

import (
	"slices"
	"strings"
	"time"
)

// value is the type of a key: how its text is checked and where it goes.
type value struct {
	kind     string // for the reference
	limits   string // for the reference; empty for none
	example  string // for the error that a required key is missing
	secret   bool
	required bool
	parse    func(text string) *fault
}

// fault is what a parser found, without the place.
type fault struct{ problem, remedy string }

// faultOf makes a check of this package's exported functions fit: their errors
// are *Error too.
func faultOf(err error) *fault {
	if err == nil {
		return nil
	}
	if e, ok := err.(*Error); ok { //nolint:errorlint // made right here, never wrapped
		return &fault{e.Problem, e.Remedy}
	}
	return &fault{problem: err.Error()}
}

func needed(v value, example string) value {
	v.required, v.example = true, example
	return v
}

// text takes any line; the checks refuse some.
func text(into *string, checks ...func(string) error) value {
	return value{kind: "text", parse: func(s string) *fault {
		if f := printable(s); f != nil {
			return f
		}
		for _, check := range checks {
			if err := check(s); err != nil {
				return faultOf(err)
			}
		}
		*into = s
		return nil
	}}
}

// noneable is a text for which the word None, as in Python, means empty.
// The checks see only what is not empty.
func noneable(into *string, checks ...func(string) error) value {
	for i, check := range checks {
		checks[i] = optional(check)
	}
	v := text(into, checks...)
	parse := v.parse
	v.parse = func(s string) *fault { return parse(none(s)) }
	return v
}

// secret is a noneable text whose value is never shown.
func secret(into *string) value {
	v := noneable(into)
	v.kind, v.secret = "secret", true
	return v
}

func none(s string) string {
	if s == "None" {
		return ""
	}
	return s
}

// list takes items separated by commas or blanks.
func list(into *[]string, check func(string) error) value {
	return value{kind: "list", parse: func(s string) *fault {
		if f := printable(s); f != nil {
			return f
		}
		items := strings.FieldsFunc(none(s), func(r rune) bool { return r == ',' || r == ' ' })
		for _, item := range items {
			if err := check(item); err != nil {
				return faultOf(err)
			}
		}
		*into = items
		return nil
	}}
}

// choice takes one of the words, or nothing.
func choice(into *string, words ...string) value {
	return value{kind: "word", limits: strings.Join(words, " or ") + ", or empty", parse: func(s string) *fault {
		if s == "" || slices.Contains(words, s) {
			*into = s
			return nil
		}
		return &fault{"not one of the known words", "write " + strings.Join(words, " or ") + ", or leave it empty"}
	}}
}

// word takes one of the words.
func word(into *string, words ...string) value {
	v := choice(into, words...)
	v.limits = strings.Join(words, " or ")
	parse := v.parse
	v.parse = func(s string) *fault {
		if s == "" {
			return &fault{"empty", "write " + v.limits}
		}
		return parse(s)
	}
	return v
}

func boolean(into *bool) value {
	return value{kind: "true or false", parse: func(s string) *fault {
		switch strings.ToLower(s) {
		case "true", "yes", "on", "1":
			*into = true
		case "false", "no", "off", "0":
			*into = false
		default:
			return &fault{"neither true nor false", "write true or false"}
		}
		return nil
	}}
}

// seconds takes a finite duration from least to most.
func seconds(into *time.Duration, least, most time.Duration) value {
	limits := "from " + secondsText(least) + " to " + secondsText(most)
	return value{kind: "seconds", limits: limits, parse: func(s string) *fault {
		d, err := ParseDuration(s)
		if err != nil {
			return faultOf(err)
		}
		if d < least || d > most {
			return &fault{"out of range", "write seconds " + limits}
		}
		*into = d
		return nil
	}}
}
