package store

import (
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/statemachine"
)

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
		if _, err := route.ParseDefault(f[0], f[1]); err != nil {
			return err
		}
	}
	return nil
}

// checkBucket wants the one text for each part: another spelling would be another
// bucket.
func (s *Spec) checkBucket() error {
	if err := route.CheckQueueName(s.Bucket.QueueName()); err != nil {
		return err
	}
	fields := s.Bucket.Fields()
	for i := 0; i+1 < len(fields); i += 2 {
		name, value := fields[i], fields[i+1]
		if name == queueField {
			continue
		}
		text, err := route.ParseDefault(name, value)
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
