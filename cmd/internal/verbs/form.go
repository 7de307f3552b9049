package verbs

import (
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// form is a task as people write it: texts, empty for what they leave out.
type form struct {
	program, source, input                      string
	argv                                        []string
	startAfter, endBefore, timeout              string
	maxFails, maxTimeouts, maxLosses, maxFaults string
	failOn, charge                              string
	queue, env, labels, resources, priority     string
	retryDelay, retryBackoff, retryMaxDelay     string
	retryJitter, retryExitCodes, fatalExitCodes string
	hold, key                                   string
}

// formField is a text of a form: its name as a hash field, what it is for, and
// the place of it. Its flag has dashes for the underscores.
type formField struct {
	name, usage string
	into        *string
}

// texts are the fields that people write as texts on the command line and as
// texts, or numbers where they are some, in JSON.
func (f *form) texts() []formField {
	return []formField{
		{programField, "name of the program", &f.program},
		{sourceField, "where to get it: https://..., rsync:...", &f.source},
		{"start_after", "earliest start", &f.startAfter},
		{"end_before", "latest moment of being executed", &f.endBefore},
		{"timeout", "longest time of a round", &f.timeout},
		{"max_fails", "how often the task may fail and be opened again", &f.maxFails},
		{"max_timeouts", "how often it may time out and be opened again", &f.maxTimeouts},
		{"max_losses", "how often it may lose its worker and be opened again", &f.maxLosses},
		{"max_faults", "how often it may fail without being to blame and be opened again", &f.maxFaults},
		{"fail_on", "what makes a round a failure: any, stderr or exit", &f.failOn},
		{"charge", "which failures count as fails: all, or program for its own only", &f.charge},
		{queueField, "queue of the task", &f.queue},
		{envField, "environment that a worker must share", &f.env},
		{"priority", "-1000 to 1000, higher first", &f.priority},
		{"retry_delay", "rest before the task is run again after its first failure", &f.retryDelay},
		{"retry_backoff", "how much longer each rest is than the one before, such as 2", &f.retryBackoff},
		{"retry_max_delay", "longest rest", &f.retryMaxDelay},
		{"retry_jitter", "part of the rest that is left to chance, 0 to 1", &f.retryJitter},
		{"retry_exit_codes", "run again after these exit codes only, such as 75,111", &f.retryExitCodes},
		{"fatal_exit_codes", "never run again after these exit codes", &f.fatalExitCodes},
		{"key", "makes the task unique in its queue for 7 days: the same key opens no second one", &f.key},
	}
}

// spec reads the texts. now is Redis' time, for times such as "+10m". The error
// is a *statemachine.FieldError.
func (f *form) spec(now time.Time) (manager.Spec, error) {
	s := manager.Spec{
		Program: f.program, Source: f.source, Input: f.input, Argv: f.argv, FailOn: f.failOn,
		Queue: f.queue, Env: f.env, Charge: f.charge, Hold: f.hold, Key: f.key,
	}
	for _, read := range []func(*manager.Spec, time.Time) error{f.times, f.counts, f.demands, f.retries} {
		if err := read(&s, now); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (f *form) times(s *manager.Spec, now time.Time) (err error) {
	if s.StartAfter, err = parseWhen("start_after", f.startAfter, now); err != nil {
		return err
	}
	if s.EndBefore, err = parseWhen("end_before", f.endBefore, now); err != nil {
		return err
	}
	s.Timeout, err = parseSpan("timeout", f.timeout)
	return err
}

func (f *form) counts(s *manager.Spec, _ time.Time) error {
	for _, l := range []struct {
		field, text string
		into        **int
	}{
		{"max_fails", f.maxFails, &s.MaxFails}, {"max_timeouts", f.maxTimeouts, &s.MaxTimeouts},
		{"max_losses", f.maxLosses, &s.MaxLosses}, {"max_faults", f.maxFaults, &s.MaxFaults},
	} {
		var err error
		if *l.into, err = parseCount(l.field, l.text); err != nil {
			return err
		}
	}
	return nil
}

func (f *form) demands(s *manager.Spec, _ time.Time) (err error) {
	if s.Labels, err = parseLabels(f.labels); err != nil {
		return err
	}
	if s.Resources, err = parseResources(f.resources); err != nil {
		return err
	}
	s.Priority, err = parsePriority(f.priority)
	return err
}

func (f *form) retries(s *manager.Spec, _ time.Time) (err error) {
	if s.RetryDelay, err = parseDelay("retry_delay", f.retryDelay); err != nil {
		return err
	}
	if s.RetryMaxDelay, err = parseSpan("retry_max_delay", f.retryMaxDelay); err != nil {
		return err
	}
	if s.RetryBackoff, err = parseNumber("retry_backoff", f.retryBackoff); err != nil {
		return err
	}
	if s.RetryJitter, err = parseNumber("retry_jitter", f.retryJitter); err != nil {
		return err
	}
	if s.RetryExitCodes, err = parseCodes("retry_exit_codes", f.retryExitCodes); err != nil {
		return err
	}
	s.FatalExitCodes, err = parseCodes("fatal_exit_codes", f.fatalExitCodes)
	return err
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

// parseDelay is parseSpan that takes 0 too, which is no delay whatever the
// defaults are.
func parseDelay(field, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := config.ParseDuration(text)
	switch {
	case err != nil || d < 0:
		return 0, &statemachine.FieldError{Field: field, Value: text, Want: "a duration such as 0, 30 or 5m"}
	case d == 0:
		return manager.NoDelay, nil
	default:
		return d, nil
	}
}

// parseCount reads a limit, or "unlimited". An empty text is nil.
func parseCount(field, text string) (*int, error) {
	switch text {
	case "":
		return nil, nil //nolint:nilnil // nil means: the default
	case task.Unlimited, "inf":
		return new(manager.Unlimited), nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return nil, &statemachine.FieldError{
			Field: field, Value: text, Want: "a whole number that is not negative, or " + task.Unlimited,
		}
	}
	return new(int(n)), nil
}

// parsePriority reads a priority. An empty text is nil.
func parsePriority(text string) (*int, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // nil means: the default
	}
	n, err := task.ParsePriority(text)
	return &n, err
}

// parseNumber reads a number. An empty text is nil. What it may be is checked
// with the rest of the task.
func parseNumber(field, text string) (*float64, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // nil means: the default
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, &statemachine.FieldError{Field: field, Value: text, Want: "a number such as 0.5 or 2"}
	}
	return &f, nil
}

// noneText stands for an empty list, whatever the defaults are.
const noneText = "none"

// parseLabels reads label=value pairs. An empty text is nil, none an empty list.
func parseLabels(text string) ([]string, error) {
	switch text {
	case "":
		return nil, nil
	case noneText:
		return []string{}, nil
	}
	canonical, err := task.ParseLabels(text)
	return strings.Split(canonical, ","), err
}

// parseResources reads name=number pairs. An empty text is nil, none an empty map.
func parseResources(text string) (map[string]int, error) {
	switch text {
	case "":
		return nil, nil //nolint:nilnil // nil means: the default
	case noneText:
		return map[string]int{}, nil
	}
	return task.ParseResources(text)
}

// parseCodes reads exit codes. An empty text is nil, none an empty list.
func parseCodes(field, text string) ([]int, error) {
	switch text {
	case "":
		return nil, nil
	case noneText:
		return []int{}, nil
	}
	canonical, err := task.ParseDefault(field, text)
	if err != nil {
		return nil, err
	}
	var codes []int
	for word := range strings.SplitSeq(canonical, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, &statemachine.FieldError{Field: field, Value: text, Want: "exit codes such as 1,2,75"}
		}
		codes = append(codes, n)
	}
	return codes, nil
}
