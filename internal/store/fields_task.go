package store

import (
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
)

// limitOr is limit for a field that may be missing.
func (f *fieldReader) limitOr(field string, otherwise statemachine.Limit) statemachine.Limit {
	if f.get(field) == "" {
		return otherwise
	}
	return f.limit(field)
}

// part reads a number that is not negative; a missing one is 0.
func (f *fieldReader) part(field string) float64 {
	text := f.get(field)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0) { // the form is true for NaN
		f.fail(field, &statemachine.FieldError{Value: text, Want: "a number that is not negative"})
	}
	return n
}

// span is duration for a field that may be missing: then 0.
func (f *fieldReader) span(field string) statemachine.Duration {
	if f.get(field) == "" {
		return 0
	}
	return f.duration(field)
}

// codes reads a list such as "75,111".
func (f *fieldReader) codes(field string) []int {
	text := f.get(field)
	if text == "" {
		return nil
	}
	var codes []int
	for item := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(item)
		if err != nil || n < 0 || n > 255 {
			f.fail(field, &statemachine.FieldError{Value: text, Want: "exit codes from 0 to 255, separated by commas"})
			return nil
		}
		codes = append(codes, n)
	}
	return codes
}

// task reads all that does not depend on the round.
func (f *fieldReader) task(id int64) statemachine.Task {
	return statemachine.Task{
		ID: id, State: statemachine.State(f.get("state")), Round: f.count("round"), Rev: int64(f.count("rev")),
		Fails: f.count("fails"), Timeouts: f.count("timeouts"), Losses: f.count("losses"), Releases: f.count("releases"),
		Faults:     f.count("faults"),
		StopAsked:  f.get("cancel_requested") != "",
		StartAfter: f.time(startField), EndBefore: f.time("end_before"), Timeout: f.duration("timeout"),
		NotBefore: f.stamp("not_before"),
		Backoff: statemachine.Backoff{
			Delay: f.span("retry_delay"), Max: f.span("retry_max_delay"),
			Factor: f.part("retry_backoff"), Jitter: f.part("retry_jitter"),
		},
		MaxFails: f.limit("max_fails"), MaxTimeouts: f.limit("max_timeouts"),
		MaxLosses:  f.limitOr("max_losses", statemachine.DefaultMaxLosses),
		MaxFaults:  f.limitOr("max_faults", statemachine.DefaultMaxFaults),
		RetryCodes: f.codes("retry_exit_codes"), FatalCodes: f.codes("fatal_exit_codes"),
		ChargeProgram: f.get("charge") == chargeProgram,
		Outcome:       statemachine.State(f.get("outcome")),
	}
}

// chargeProgram is the value of the field charge that spares the task failures
// that are not its own.
const chargeProgram = "program"

// current reads the round the task is in.
func (f *fieldReader) current() statemachine.Round {
	r := statemachine.Round{
		Claim: f.get("claim"), Running: f.stamp("running"), Executed: f.stamp("executed"), Failed: f.get("failed") != "",
		Class: statemachine.Class(f.get("class")),
	}
	if code, err := strconv.Atoi(f.get("exit_code")); err == nil {
		r.ExitCode, r.HasExit = code, true
	}
	return r
}

func (f *fieldReader) bucket() Bucket {
	b := Bucket{Queue: f.get("queue"), Env: f.get("env"), Labels: f.get("labels"), Resources: f.get("resources")}
	if text := f.get("priority"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			f.fail("priority", &statemachine.FieldError{Value: text, Want: "a whole number"})
		}
		b.Priority = n
	}
	if b.Queue == DefaultQueue {
		b.Queue = ""
	}
	return b
}
