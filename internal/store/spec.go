package store

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
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

// maxNameBytes bounds a program name; longer ones are mistakes.
const maxNameBytes = 128

// Check returns a *statemachine.FieldError for the first field that cannot be.
func (s *Spec) Check() error {
	if s.Program == "" || len(s.Program) > maxNameBytes {
		return &statemachine.FieldError{Field: "program", Value: s.Program, Want: "a name of 1 to 128 bytes"}
	}
	if s.FailOn != "" && s.FailOn != "stderr" && s.FailOn != "exit" {
		return &statemachine.FieldError{Field: "fail_on", Value: s.FailOn, Want: "empty, stderr or exit"}
	}
	start, err := statemachine.ParseTime(s.StartAfter)
	if err != nil || start == statemachine.Never {
		return &statemachine.FieldError{Field: startField, Value: s.StartAfter, Want: "a time in seconds since 1970"}
	}
	end, err := statemachine.ParseTime(s.EndBefore)
	if err != nil {
		return named("end_before", err)
	}
	if start > end {
		return &statemachine.FieldError{Field: startField, Value: s.StartAfter, Want: "earlier than end_before = " + s.EndBefore}
	}
	timeout, err := statemachine.ParseDuration(s.Timeout)
	if err != nil {
		return named("timeout", err)
	}
	if timeout <= 0 {
		return &statemachine.FieldError{Field: "timeout", Value: s.Timeout, Want: "a number of seconds above 0, or inf"}
	}
	if err := s.checkLimits(); err != nil {
		return err
	}
	if err := s.checkRetries(); err != nil {
		return err
	}
	if err := s.checkBucket(); err != nil {
		return err
	}
	return s.checkIdentity()
}

func (s *Spec) checkLimits() error {
	limits := [][2]string{{"max_fails", s.MaxFails}, {"max_timeouts", s.MaxTimeouts}}
	if s.MaxLosses != "" {
		limits = append(limits, [2]string{"max_losses", s.MaxLosses})
	}
	for _, l := range limits {
		if _, err := statemachine.ParseLimit(l[1]); err != nil {
			return named(l[0], err)
		}
	}
	return nil
}

// checkRetries looks at what says whether and when a failed task is run again;
// empty is always fine.
func (s *Spec) checkRetries() error {
	for _, span := range [][2]string{{"retry_delay", s.RetryDelay}, {"retry_max_delay", s.RetryMaxDelay}} {
		if span[1] == "" {
			continue
		}
		if _, err := statemachine.ParseDuration(span[1]); err != nil { // in the hash are seconds, not 5m
			return named(span[0], err)
		}
	}
	for _, f := range [][2]string{
		{"max_faults", s.MaxFaults}, {"charge", s.Charge}, {"retry_delay", s.RetryDelay}, {"retry_backoff", s.RetryBackoff},
		{"retry_max_delay", s.RetryMaxDelay}, {"retry_jitter", s.RetryJitter},
		{"retry_exit_codes", s.RetryExitCodes}, {"fatal_exit_codes", s.FatalExitCodes},
	} {
		if f[1] == "" {
			continue
		}
		if _, err := task.ParseDefault(f[0], f[1]); err != nil {
			return err
		}
	}
	return nil
}

// checkBucket wants the one text for each part: another spelling would be another
// bucket.
func (s *Spec) checkBucket() error {
	if err := task.CheckQueueName(s.Bucket.QueueName()); err != nil {
		return err
	}
	fields := s.Bucket.Fields()
	for i := 0; i+1 < len(fields); i += 2 {
		name, value := fields[i], fields[i+1]
		if name == queueField {
			continue
		}
		text, err := task.ParseDefault(name, value)
		if err != nil {
			return err
		}
		if text != value {
			return &statemachine.FieldError{Field: name, Value: value, Want: "written as " + quote(text)}
		}
	}
	return nil
}

// The names of hash fields of a task that are a part of its bucket.
const (
	queueField     = "queue"
	resourcesField = "resources"
)

// maxKeyBytes bounds a key, maxHeldBytes the reason of a hold, maxStepBytes the name of a step.
const (
	maxKeyBytes  = 256
	maxHeldBytes = 1024
	maxStepBytes = 128
)

// checkIdentity looks at what ties the task to others.
func (s *Spec) checkIdentity() error {
	if len(s.Key) > maxKeyBytes {
		return &statemachine.FieldError{Field: "key", Value: s.Key, Want: "a text of at most 256 bytes"}
	}
	if s.ArgsAs != "" && s.ArgsAs != ArgsWords && s.ArgsAs != ArgsFiles {
		return &statemachine.FieldError{Field: "args", Value: s.ArgsAs, Want: "words or files"}
	}
	if len(s.Step) > maxStepBytes || strings.ContainsAny(s.Step, "\r\n") {
		return &statemachine.FieldError{Field: "step", Value: s.Step, Want: "one line of at most 128 bytes"}
	}
	if len(s.Held) > maxHeldBytes {
		return &statemachine.FieldError{Field: "hold", Value: s.Held, Want: "a reason of at most 1024 bytes"}
	}
	for _, f := range []struct {
		name string
		n    int64
	}{{"retry_of", s.RetryOf}, {"replay_of", s.ReplayOf}, {"replay_round", int64(s.ReplayRound)}} {
		if f.n < 0 {
			return &statemachine.FieldError{Field: f.name, Value: strconv.FormatInt(f.n, 10), Want: "a number that is not negative"}
		}
	}
	return nil
}
