package store

import (
	"strconv"

	"github.com/tdf-go/tdf/statemachine"
)

// fieldReader decodes hash fields and keeps the first thing that was wrong.
type fieldReader struct {
	get func(name string) string
	err error
}

func named(field string, err error) error {
	if fe, ok := err.(*statemachine.FieldError); ok && fe.Field == "" { //nolint:errorlint // made one line above, never wrapped
		return &statemachine.FieldError{Field: field, Value: fe.Value, Want: fe.Want}
	}
	return err
}

func (f *fieldReader) fail(field string, err error) {
	if f.err == nil && err != nil {
		f.err = named(field, err)
	}
}

// count reads a counter; a missing one is 0.
func (f *fieldReader) count(field string) int {
	text := f.get(field)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		f.fail(field, &statemachine.FieldError{Value: text, Want: "a whole number that is not negative"})
	}
	return n
}

func (f *fieldReader) time(field string) statemachine.Time {
	t, err := statemachine.ParseTime(f.get(field))
	f.fail(field, err)
	return t
}

// stamp is time for a field that may be missing: then 0.
func (f *fieldReader) stamp(field string) statemachine.Time {
	if f.get(field) == "" {
		return 0
	}
	return f.time(field)
}

func (f *fieldReader) duration(field string) statemachine.Duration {
	d, err := statemachine.ParseDuration(f.get(field))
	f.fail(field, err)
	return d
}

func (f *fieldReader) limit(field string) statemachine.Limit {
	l, err := statemachine.ParseLimit(f.get(field))
	f.fail(field, err)
	return l
}

func (f *fieldReader) maxLosses() statemachine.Limit {
	if f.get("max_losses") == "" {
		return statemachine.DefaultMaxLosses
	}
	return f.limit("max_losses")
}

// task reads all that does not depend on the round.
func (f *fieldReader) task(id int64) statemachine.Task {
	return statemachine.Task{
		ID: id, State: statemachine.State(f.get("state")), Round: f.count("round"), Rev: int64(f.count("rev")),
		Fails: f.count("fails"), Timeouts: f.count("timeouts"), Losses: f.count("losses"), Releases: f.count("releases"),
		StartAfter: f.time("start_after"), EndBefore: f.time("end_before"), Timeout: f.duration("timeout"),
		MaxFails: f.limit("max_fails"), MaxTimeouts: f.limit("max_timeouts"), MaxLosses: f.maxLosses(),
		Outcome: statemachine.State(f.get("outcome")),
	}
}

func (f *fieldReader) bucket() Bucket {
	b := Bucket{Queue: f.get("queue"), Env: f.get("env"), Labels: f.get("labels")}
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
