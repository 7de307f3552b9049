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
	return value{kind: "retention", limits: "`off`, or entries separated by commas", parse: func(s string) *fault {
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
				return &fault{wrong, remedy}
			}
			found[r.Outcome] = r
		}
		*into = spread(found)
		return nil
	}}
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
	if outcome := statemachine.State(words[0]); outcome.Ended() {
		r.Outcome, words = outcome, words[1:]
	}
	if len(words) == 1 && (words[0] == "unlimited" || words[0] == infinite) {
		return r, ""
	}
	for _, word := range words {
		age, isAge := retentionAge(word)
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

// retentionAge reads a number with a unit: s, m, h, d or w.
func retentionAge(word string) (time.Duration, bool) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}
	n, err := strconv.ParseFloat(word[:len(word)-1], 64)
	unit, known := units[word[len(word)-1]]
	age := n * float64(unit)
	if err != nil || !known || math.IsNaN(age) || age < float64(time.Second) || age > float64(longestRetention) {
		return 0, false
	}
	return time.Duration(age), true
}

// ruled makes a check of package route, whose errors say what is wanted and,
// behind a semicolon, what to write, one of this package.
func ruled(check func(string) error) func(string) error {
	return func(s string) error {
		if f := ruling(check(s)); f != nil {
			return invalid(f.problem, f.remedy)
		}
		return nil
	}
}

func ruling(err error) *fault {
	if err == nil {
		return nil
	}
	fe, ok := errors.AsType[*statemachine.FieldError](err)
	if !ok {
		return &fault{problem: err.Error()}
	}
	want, remedy, ok := strings.Cut(fe.Want, "; ")
	if !ok {
		remedy = "write " + want
	}
	return &fault{"not " + want, remedy}
}

func checkLabel(s string) error {
	_, err := task.ParseLabels(s)
	return err
}

// resources takes a list of name=number.
func resources(into *task.Resources) value {
	return value{kind: "list", limits: "of name=number", parse: func(s string) *fault {
		r, err := task.ParseResources(commas(s))
		if err == nil {
			*into = r
		}
		return ruling(err)
	}}
}

// threads takes a number of tasks, or unlimited.
func threads(into *task.Limit) value {
	return value{kind: "whole number", limits: "0 or more, or " + task.UnlimitedText, parse: func(s string) *fault {
		l, err := task.ParseLimit(s)
		if err == nil {
			*into = l
		}
		return ruling(err)
	}}
}

// ofTask takes what a field of a task can be, and keeps the one text for it.
// Lists may be separated by blanks too.
func ofTask(d *TaskDefaults, f task.Field) value {
	kind, limits := f.Type()
	return value{kind: kind, limits: limits, parse: func(s string) *fault {
		if f.List() {
			s = commas(s)
		}
		text, err := task.Parse(f.Name, s)
		if err == nil {
			if d.Defaults == nil {
				d.Defaults = task.Defaults{}
			}
			d.Defaults[f.Name] = text
		}
		return ruling(err)
	}}
}

// commas separates a list by commas only.
func commas(s string) string {
	return strings.Join(strings.FieldsFunc(none(s), func(r rune) bool { return r == ',' || r == ' ' }), ",")
}
