package config

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// value is the type of a key: how its text is checked and where it goes.
type value struct {
	kind     string // for the reference
	limits   string // for the reference; empty for none
	example  string // for the error that a required key is missing
	secret   bool
	required bool
	parse    func(text string) error // an *Error without a place, or one of package task
}

// of is a value that parse reads into a field of the File.
func of[T any](into *T, kind, limits string, parse func(string) (T, error)) value {
	return value{kind: kind, limits: limits, parse: func(s string) error {
		v, err := parse(s)
		if err == nil {
			*into = v
		}
		return err
	}}
}

func invalid(problem, remedy string) error {
	return &Error{Problem: problem, Remedy: remedy, Err: ErrInvalid}
}

// explain is what a check found: its problem and its remedy. Errors of package
// task say what is wanted and, behind a semicolon, what to write.
func explain(err error) (problem, remedy string) {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Problem, e.Remedy
	}
	fe, ok := errors.AsType[*statemachine.FieldError](err)
	if !ok {
		return err.Error(), ""
	}
	want, remedy, ok := strings.Cut(fe.Want, "; ")
	if !ok {
		remedy = "write " + want
	}
	return "not " + want, remedy
}

func needed(v value, example string) value {
	v.required, v.example = true, example
	return v
}

// text takes any line; the checks refuse some.
func text(into *string, checks ...func(string) error) value {
	return of(into, "text", "", func(s string) (string, error) {
		for _, check := range append([]func(string) error{printable}, checks...) {
			if err := check(s); err != nil {
				return "", err
			}
		}
		return s, nil
	})
}

// textOrNone is a text for which the word None, as in Python, means empty.
// The checks see only what is not empty.
func textOrNone(into *string, checks ...func(string) error) value {
	for i, check := range checks {
		checks[i] = optional(check)
	}
	v := text(into, checks...)
	parse := v.parse
	v.parse = func(s string) error { return parse(none(s)) }
	return v
}

// secret is a textOrNone text whose value is never shown.
func secret(into *string) value {
	v := textOrNone(into)
	v.kind, v.secret = "secret", true
	return v
}

func none(s string) string {
	if s == "None" {
		return ""
	}
	return s
}

// items are those of a list, separated by commas or blanks.
func items(s string) []string {
	return strings.FieldsFunc(none(s), func(r rune) bool { return r == ',' || r == ' ' })
}

// list takes items that check finds right.
func list(into *[]string, check func(string) error) value {
	return of(into, "list", "", func(s string) ([]string, error) {
		if err := printable(s); err != nil {
			return nil, err
		}
		for _, item := range items(s) {
			if err := check(item); err != nil {
				return nil, err
			}
		}
		return items(s), nil
	})
}

// word takes one of the words.
func word(into *string, words ...string) value {
	known := strings.Join(words, " or ")
	return of(into, "word", known, func(s string) (string, error) {
		switch {
		case s == "":
			return "", invalid("empty", "write "+known)
		case !slices.Contains(words, s):
			return "", invalid("not one of the known words", "write "+known)
		}
		return s, nil
	})
}

// disabled is the default of most switches.
const disabled = "false"

func boolean(into *bool) value {
	return of(into, "true or false", "", func(s string) (bool, error) {
		switch strings.ToLower(s) {
		case "true", "yes", "on", "1":
			return true, nil
		case disabled, "no", "off", "0":
			return false, nil
		default:
			return false, invalid("neither true nor false", "write true or false")
		}
	})
}

// Retention says how long archived tasks of an outcome stay in Redis.
type Retention struct {
	Outcome statemachine.State
	// Age is how long after it was archived a task goes (0: never), Most how many there may be at most, of which the newest
	// stay (negative: any number).
	Age  time.Duration
	Most int64
}

// longestRetention bounds the age: anything longer is a slip.
const longestRetention = 100 * 365 * 24 * time.Hour

// retention takes how long archived tasks are kept: entries separated by commas, each an outcome, or none for all others, and
// an age, a number of tasks, or both.
func retention(into *[]Retention) value {
	const remedy = "write entries such as `7d`, `failed 30d`, `succeeded 1d 100000`, `cancelled unlimited`, " +
		"separated by commas, each outcome once; or off"
	return of(into, "retention", "`off`, or entries separated by commas", func(s string) ([]Retention, error) {
		found := map[statemachine.State]Retention{}
		for entry := range strings.SplitSeq(none(s), ",") {
			words := strings.Fields(entry)
			if len(words) == 0 || len(words) == 1 && words[0] == "off" {
				continue
			}
			r, wrong := oneRetention(words)
			if _, twice := found[r.Outcome]; twice && wrong == "" {
				wrong = "the outcome " + strconv.Quote(outcomeName(r.Outcome)) + " comes twice"
			}
			if wrong != "" {
				return nil, invalid(wrong, remedy)
			}
			found[r.Outcome] = r
		}
		return spread(found), nil
	})
}

func outcomeName(s statemachine.State) string {
	if s == statemachine.None {
		return "all others"
	}
	return string(s)
}

// spread gives each outcome its own, or that of all others; one that is kept for ever needs none.
func spread(found map[statemachine.State]Retention) (all []Retention) {
	for _, outcome := range statemachine.Outcomes() {
		r, given := found[outcome]
		if !given {
			r, given = found[statemachine.None]
		}
		if r.Outcome = outcome; given && (r.Age > 0 || r.Most >= 0) {
			all = append(all, r)
		}
	}
	return all
}

// oneRetention reads an entry; wrong is empty if it is right.
func oneRetention(words []string) (r Retention, wrong string) {
	r.Most = -1
	if outcome := statemachine.State(words[0]); outcome.IsOutcome() {
		r.Outcome, words = outcome, words[1:]
	}
	if len(words) == 1 && (words[0] == "unlimited" || words[0] == infinite) {
		return r, ""
	}
	for _, word := range words {
		age, isAge := Age(word)
		most, err := strconv.ParseInt(word, 10, 64)
		switch {
		case isAge && r.Age == 0:
			r.Age = age
		case err == nil && most >= 0 && r.Most < 0:
			r.Most = most
		default:
			return r, strconv.Quote(word) + " is neither an outcome nor an age nor a number of tasks, or the second of its kind"
		}
	}
	if len(words) == 0 {
		return r, "an entry says of which outcome, but not how long"
	}
	return r, ""
}

// Age reads how long ago something may be, at least a second: a number with a unit, s, m, h, d or w.
func Age(word string) (time.Duration, bool) {
	if word == "" {
		return 0, false
	}
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	n, err := strconv.ParseFloat(word[:len(word)-1], 64)
	unit, known := units[word[len(word)-1]]
	age := n * float64(unit)
	if err != nil || !known || math.IsNaN(age) || age < float64(time.Second) || age > float64(longestRetention) {
		return 0, false
	}
	return time.Duration(age), true
}

func checkLabel(s string) error {
	_, err := task.ParseLabels(s)
	return err
}

// resources takes a list of name=number.
func resources(into *task.Resources) value {
	return of(into, "list", "of name=number", func(s string) (task.Resources, error) {
		return task.ParseResources(strings.Join(items(s), ","))
	})
}

// threads takes a number of tasks, or unlimited.
func threads(into *task.Limit) value {
	return of(into, "whole number", "0 or more, or "+string(task.Unlimited), task.ParseLimit)
}

// ofTask takes what a field of a task can be, and keeps the one text for it.
// Lists may be separated by blanks too.
func ofTask(d *TaskDefaults, f task.Field) value {
	kind, limits := f.Type()
	return value{kind: kind, limits: limits, parse: func(s string) error {
		if f.List() {
			s = strings.Join(items(s), ",")
		}
		text, err := task.Parse(f.Name, s)
		if err != nil {
			return err
		}
		if d.Defaults == nil {
			d.Defaults = task.Defaults{}
		}
		d.Defaults[f.Name] = text
		return nil
	}}
}
