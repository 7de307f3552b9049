package config

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

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
