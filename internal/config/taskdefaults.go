package config

import (
	"math"
	"strconv"
)

// TaskDefaults holds the section [task_defaults]: the values of a new task that
// its opener did not give.
//
// StartAfter to MaxLosses are kept as written ("0", "inf"), because the
// original stores them so in a task's hash; only Go durations become plain
// seconds, and every spelling of infinity becomes "inf". All are validated; the
// accessors return them as numbers.
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
	// MaxLosses is how often a task may lose its worker and be re-opened (default "3").
	MaxLosses string
	// AddRandomStartOffset adds a random part of a second to start_after, to
	// mix tasks with the same start (default false).
	AddRandomStartOffset bool
	// FailOn says what makes a round a failure: "stderr" any output there,
	// "exit" only the exit status, "" (default) either.
	FailOn string
}

// StartAfterSeconds returns StartAfter in unix seconds.
func (d *TaskDefaults) StartAfterSeconds() float64 { return number(d.StartAfter) }

// EndBeforeSeconds returns EndBefore in unix seconds; +Inf means no end.
func (d *TaskDefaults) EndBeforeSeconds() float64 { return number(d.EndBefore) }

// TimeoutSeconds returns Timeout in seconds; +Inf means none.
func (d *TaskDefaults) TimeoutSeconds() float64 { return number(d.Timeout) }

// MaxFailsCount returns MaxFails; math.MaxInt means no limit.
func (d *TaskDefaults) MaxFailsCount() int { return count(d.MaxFails) }

// MaxTimeoutsCount returns MaxTimeouts; math.MaxInt means no limit.
func (d *TaskDefaults) MaxTimeoutsCount() int { return count(d.MaxTimeouts) }

// MaxLossesCount returns MaxLosses; math.MaxInt means no limit.
func (d *TaskDefaults) MaxLossesCount() int { return count(d.MaxLosses) }

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
	if d.StartAfterSeconds() <= d.EndBeforeSeconds() {
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

// count converts a text that Load has validated.
func count(text string) int {
	n := number(text)
	if n >= math.MaxInt32 {
		return math.MaxInt
	}
	return int(n)
}
