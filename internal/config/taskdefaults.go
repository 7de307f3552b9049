package config

import "strconv"

// TaskDefaults holds the section [task_defaults]: the values of a new task that
// its opener did not give.
//
// StartAfter to MaxLosses are kept as written ("0", "inf"), because the
// original stores them so in a task's hash; only Go durations become plain
// seconds, and every spelling of infinity becomes "inf". All are validated.
type TaskDefaults struct {
	// StartAfter is the earliest start, in unix seconds (default "0"; finite).
	StartAfter string
	// EndBefore is the latest end, in unix seconds (default "inf").
	EndBefore string
	// Timeout is the longest time a round may run, in seconds (default "inf").
	Timeout string
	// MaxFails is how often a task may fail and be re-opened (default "0").
	MaxFails string
	// MaxTimeouts is how often a task may time out and be re-opened (default "0").
	MaxTimeouts string
	// MaxLosses is how often a task may lose its worker and be re-opened
	// (default statemachine.DefaultMaxLosses).
	MaxLosses string
	// AddRandomStartOffset adds a random part of a second to start_after, to
	// mix tasks with the same start (default false).
	AddRandomStartOffset bool
	// FailOn says what makes a round a failure: FailOnStderr, FailOnExit, or ""
	// (default) either. It is "" for FailOnAny too: a task without the field.
	FailOn string
}

// The words for what makes a round a failure; see TaskDefaults.FailOn.
const (
	FailOnAny    = "any"    // text on stderr, a non-zero exit, or a signal
	FailOnStderr = "stderr" // text on stderr only
	FailOnExit   = "exit"   // a non-zero exit or a signal only
)

// FailOnWords are all words that fail_on can be, the default first.
func FailOnWords() []string { return []string{FailOnAny, FailOnStderr, FailOnExit} }

// failOn takes one of the words, or nothing, and stores the default as nothing,
// which is how a task's hash says it.
func failOn(into *string) value {
	v := choice(into, FailOnWords()...)
	parse := v.parse
	v.parse = func(s string) *fault {
		if s == FailOnAny {
			s = ""
		}
		return parse(s)
	}
	return v
}

// Set changes one value by the name of its key, with the checks that a file
// gets, for a single task that differs from the defaults. The error is an *Error.
func (d *TaskDefaults) Set(name, text string) error {
	sec := taskDefaultsSection(d)
	k, known := sec.key(name)
	if !known {
		return schema{sec}.unknownKey(name, sec)
	}
	if f := k.parse(text); f != nil {
		return &Error{Section: sec.name, Key: name, Value: mask(text), Problem: f.problem, Remedy: f.remedy, Err: ErrInvalid}
	}
	return nil
}

// Check refuses values that contradict each other. The error is an *Error.
func (d *TaskDefaults) Check() error {
	if number(d.StartAfter) <= number(d.EndBefore) {
		return nil
	}
	return &Error{
		Section: "task_defaults", Key: "start_after", Value: d.StartAfter, Err: ErrInvalid,
		Problem: "later than end_before (" + d.EndBefore + "), so that the task would expire",
		Remedy:  "write an earlier start_after or a later end_before",
	}
}

// number converts a text that Load has validated.
func number(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}
