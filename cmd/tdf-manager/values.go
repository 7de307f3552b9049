package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/config"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
)

// form is a task as people write it: texts, empty for what they leave out.
type form struct {
	program, source, input           string
	argv                             []string
	startAfter, endBefore, timeout   string
	maxFails, maxTimeouts, maxLosses string
	failOn                           string
}

// spec reads the texts. now is Redis' time, for times such as "+10m". The error
// is a *statemachine.FieldError.
func (f *form) spec(now time.Time) (manager.Spec, error) {
	s := manager.Spec{Program: f.program, Source: f.source, Input: f.input, Argv: f.argv, FailOn: f.failOn}
	for _, t := range []struct {
		field, text string
		into        *time.Time
	}{{"start_after", f.startAfter, &s.StartAfter}, {"end_before", f.endBefore, &s.EndBefore}} {
		var err error
		if *t.into, err = parseWhen(t.field, t.text, now); err != nil {
			return s, err
		}
	}
	for _, l := range []struct {
		field, text string
		into        **int
	}{
		{"max_fails", f.maxFails, &s.MaxFails},
		{"max_timeouts", f.maxTimeouts, &s.MaxTimeouts},
		{"max_losses", f.maxLosses, &s.MaxLosses},
	} {
		var err error
		if *l.into, err = parseCount(l.field, l.text); err != nil {
			return s, err
		}
	}
	var err error
	s.Timeout, err = parseSpan("timeout", f.timeout)
	return s, err
}

// parseWhen reads a moment: seconds since 1970, RFC 3339, "+10m" from now, or
// "inf". An empty text is the zero time.
func parseWhen(field, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if later, ok := strings.CutPrefix(text, "+"); ok {
		if d, err := config.ParseDuration(later); err == nil {
			return now.Add(d), nil
		}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	t, err := statemachine.ParseTime(text)
	if err != nil {
		return time.Time{}, &statemachine.FieldError{
			Field: field, Value: text, Want: "a time such as 1795230670.5, 2026-11-21T08:00:00Z, +10m or inf",
		}
	}
	return time.UnixMicro(int64(t)), nil
}

// parseSpan reads a duration above 0, or "inf". An empty text is 0.
func parseSpan(field, text string) (time.Duration, error) {
	switch text {
	case "":
		return 0, nil
	case "inf":
		return manager.Forever, nil
	}
	d, err := config.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, &statemachine.FieldError{
			Field: field, Value: text, Want: "a duration above 0 such as 90, 1h30m or inf",
		}
	}
	return d, nil
}

// parseCount reads a limit, or "inf". An empty text is nil.
func parseCount(field, text string) (*int, error) {
	switch text {
	case "":
		return nil, nil //nolint:nilnil // nil means: the default
	case "inf":
		return new(manager.Unlimited), nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return nil, &statemachine.FieldError{
			Field: field, Value: text, Want: "a whole number that is not negative, or inf",
		}
	}
	return new(int(n)), nil
}
