package store

import (
	"encoding/json"
	"fmt"

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
}

// startField is the hash field of the earliest start.
const startField = "start_after"

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
	return s.checkLimits()
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

// values are the hash fields at creation: the sixteen of the original (the
// script adds id and the stamp), and what is not at its default.
func (s *Spec) values(namespace string) ([]any, error) {
	v := []any{
		"program", s.Program, "source", s.Source, "input", s.Input,
		startField, s.StartAfter, "end_before", s.EndBefore, "timeout", s.Timeout,
		"max_fails", s.MaxFails, "max_timeouts", s.MaxTimeouts,
		"state", string(statemachine.Open), "round", "0", "fails", "0", "timeouts", "0",
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
	for _, f := range s.Bucket.fields() {
		v = append(v, f)
	}
	return v, nil
}
