package store

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tdf-go/tdf/statemachine"
)

// Spec is the definition of a task to open. Numbers are texts, kept in the
// hash as written ("0", "inf"), as the original does.
type Spec struct {
	Program, Source, Input string
	// Argv, if not nil, is the exact argument list and takes the place of Input.
	Argv []string
	// StartAfter and EndBefore are seconds since 1970; Timeout is in seconds.
	StartAfter, EndBefore, Timeout string
	// MaxFails, MaxTimeouts and MaxLosses are counts.
	MaxFails, MaxTimeouts, MaxLosses string
	// FailOn is "" (stderr or exit status), "stderr" or "exit".
	FailOn string
	Bucket Bucket
	// MaxFaults is how many failures may not be charged to the task (see
	// statemachine.Faults); empty for statemachine.DefaultMaxFaults.
	MaxFaults string
	// RetryDelay and RetryMaxDelay are in seconds, RetryBackoff is a factor,
	// RetryJitter a part from 0 to 1; empty for none.
	RetryDelay, RetryBackoff, RetryMaxDelay, RetryJitter string
	// RetryExitCodes and FatalExitCodes are lists such as "75,111"; empty for none.
	RetryExitCodes, FatalExitCodes string
	// Charge is "", or "program" if only failures of the program and of its
	// limits count as fails.
	Charge string
	// Held is why the task begins blocked, to be released by hand; empty: it does not.
	Held string
	// Key makes the task unique in its queue for KeyTTL; empty for none.
	Key string
	// Needs are the tasks that this one waits for, in the order of its arguments; only in a plan.
	Needs []Need
	// ArgsAs says how a program gets the results of what it needs: empty or ArgsWords, also as words; ArgsFiles, in
	// files only.
	ArgsAs string
	// Step is the name of the task within its plan, for people; empty for none.
	Step string
	// Grows says that steps of the plan are for the lines of its result (see [Store.KeepGrowth]).
	Grows bool
	// RetryOf is the ended task that this one repeats; ReplayOf and ReplayRound
	// the round whose output this one is compared with. 0 for none.
	RetryOf, ReplayOf int64
	ReplayRound       int
}

// startField is the hash field of the earliest start.
const startField = "start_after"

// values are the hash fields at creation: the sixteen of the original (the
// script adds id and the stamp), and what is not at its default.
func (s *Spec) values(namespace string) ([]any, error) {
	v := []any{
		"program", s.Program, "source", s.Source, "input", s.Input,
		startField, s.StartAfter, "end_before", s.EndBefore, "timeout", s.Timeout,
		"max_fails", s.MaxFails, "max_timeouts", s.MaxTimeouts,
		"round", "0", "fails", "0", "timeouts", "0",
		"log", "", "namespace", namespace,
	}
	if s.Argv != nil {
		argv, err := json.Marshal(s.Argv)
		if err != nil {
			return nil, fmt.Errorf("field argv: %w", err)
		}
		v = append(v, "argv", string(argv))
	}
	if s.FailOn != "" {
		v = append(v, "fail_on", s.FailOn)
	}
	if s.MaxLosses != "" && s.MaxLosses != statemachine.DefaultMaxLosses.Text() {
		v = append(v, "max_losses", s.MaxLosses)
	}
	v = append(v, s.extras()...)
	for _, f := range s.Bucket.Fields() {
		v = append(v, f)
	}
	return v, nil
}

// extras are the fields that only tasks of ours have, as far as they are not at
// their default.
func (s *Spec) extras() []any {
	var v []any
	add := func(field, value, otherwise string) {
		if value != "" && value != otherwise {
			v = append(v, field, value)
		}
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	add("max_faults", s.MaxFaults, statemachine.DefaultMaxFaults.Text())
	add("retry_delay", s.RetryDelay, "0")
	add("retry_backoff", s.RetryBackoff, "1")
	add("retry_max_delay", s.RetryMaxDelay, statemachine.Forever.Text())
	add("retry_jitter", s.RetryJitter, "0")
	add("retry_exit_codes", s.RetryExitCodes, "")
	add("fatal_exit_codes", s.FatalExitCodes, "")
	add("charge", s.Charge, "all")
	add("hold", s.Held, "")
	add("key", s.Key, "")
	add("args", s.ArgsAs, ArgsWords)
	add("step", s.Step, "")
	add("retry_of", number(s.RetryOf), "0")
	add("replay_of", number(s.ReplayOf), "0")
	if s.Grows {
		v = append(v, "feeds", "1", "grows", "1")
	}
	if s.ReplayOf > 0 {
		v = append(v, "replay_round", strconv.Itoa(s.ReplayRound))
	}
	return v
}
