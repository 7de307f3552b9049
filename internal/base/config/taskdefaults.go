package config

import "strconv"

// TaskDefaults holds the section [task_defaults]: the values of a new task that
// its opener did not give.
//
// StartAfter to MaxFaults are kept as written ("0", "inf"), because the
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
	// MaxFaults is how often a task may fail without being to blame and be
	// re-opened (default statemachine.DefaultMaxFaults).
	MaxFaults string
	// AddRandomStartOffset adds a random part of a second to start_after, to
	// mix tasks with the same start (default false).
	AddRandomStartOffset bool
	// FailOn says what makes a round a failure: FailOnStderr, FailOnExit, or ""
	// (default) either. It is "" for FailOnAny too: a task without the field.
	FailOn string
	// Charge says which failures count against MaxFails: ChargeProgram, or ""
	// (default) all. It is "" for ChargeAll too.
	Charge string

	// RetryDelay is how long a task rests before it is run again, in seconds
	// (default "0"), RetryBackoff by what factor each rest is longer than the one
	// before (default "1"), RetryMaxDelay where the rests stop growing, in seconds
	// (default "inf"), RetryJitter the part of a rest left to chance, from 0 to 1
	// (default "0").
	RetryDelay, RetryBackoff, RetryMaxDelay, RetryJitter string
	// RetryExitCodes are the only exit codes that are run again, FatalExitCodes
	// those that never are: sorted, separated by commas; empty (default) for none.
	RetryExitCodes, FatalExitCodes string

	// Queue is the task's queue (default route.DefaultQueue).
	Queue string
	// Env, Labels and Resources are what the task demands, as route.Bucket holds
	// them; empty (default) for nothing.
	Env, Labels, Resources string
	// Priority is from -1000 to 1000 (default 0), higher first.
	Priority int
}

// The words for what makes a round a failure; see TaskDefaults.FailOn.
const (
	FailOnAny    = "any"    // text on stderr, a non-zero exit, or a signal
	FailOnStderr = "stderr" // text on stderr only
	FailOnExit   = "exit"   // a non-zero exit or a signal only
)

// FailOnWords are all words that fail_on can be, the default first.
func FailOnWords() []string { return []string{FailOnAny, FailOnStderr, FailOnExit} }

// The words for which failures count as such; see TaskDefaults.Charge.
const (
	ChargeAll     = "all"     // every failure
	ChargeProgram = "program" // those of the program and of its limits
)

// ChargeWords are all words that charge can be, the default first.
func ChargeWords() []string { return []string{ChargeAll, ChargeProgram} }

// defaultWord takes one of the words, or nothing, and stores the first, which is
// the default, as nothing: that is how a task's hash says it.
func defaultWord(into *string, words ...string) value {
	v := choice(into, words...)
	parse := v.parse
	v.parse = func(s string) *fault {
		if s == words[0] {
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
