package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	sm "github.com/tdf-go/tdf/statemachine"
)

// specs are the options of open: each reads one text into a task. Times count
// from the beginning of the story.
var specs = map[string]func(t *sm.Task, text string, begin sm.Time) error{
	"start_after":      func(t *sm.Task, s string, begin sm.Time) error { return moment(&t.StartAfter, s, begin) },
	"end_before":       func(t *sm.Task, s string, begin sm.Time) error { return moment(&t.EndBefore, s, begin) },
	"timeout":          func(t *sm.Task, s string, _ sm.Time) error { return read(&t.Timeout, s, duration) },
	"held":             held,
	"max_fails":        func(t *sm.Task, s string, _ sm.Time) error { return read(&t.MaxFails, s, sm.ParseLimit) },
	"max_timeouts":     func(t *sm.Task, s string, _ sm.Time) error { return read(&t.MaxTimeouts, s, sm.ParseLimit) },
	"max_losses":       func(t *sm.Task, s string, _ sm.Time) error { return read(&t.MaxLosses, s, sm.ParseLimit) },
	"max_faults":       func(t *sm.Task, s string, _ sm.Time) error { return read(&t.MaxFaults, s, sm.ParseLimit) },
	"charge":           charge,
	"retry_delay":      func(t *sm.Task, s string, _ sm.Time) error { return read(&t.Backoff.Delay, s, duration) },
	"retry_max_delay":  func(t *sm.Task, s string, _ sm.Time) error { return read(&t.Backoff.Max, s, duration) },
	"retry_backoff":    func(t *sm.Task, s string, _ sm.Time) error { return read(&t.Backoff.Factor, s, number) },
	"retry_jitter":     func(t *sm.Task, s string, _ sm.Time) error { return read(&t.Backoff.Jitter, s, number) },
	"retry_exit_codes": func(t *sm.Task, s string, _ sm.Time) error { return read(&t.RetryCodes, s, codes) },
	"fatal_exit_codes": func(t *sm.Task, s string, _ sm.Time) error { return read(&t.FatalCodes, s, codes) },
}

// spec reads the options of open.
func (a *args) spec(begin sm.Time) (sm.Task, error) {
	t := sm.Task{
		EndBefore: sm.Never, Timeout: sm.Forever,
		MaxLosses: sm.DefaultMaxLosses, MaxFaults: sm.DefaultMaxFaults,
	}
	for name, text := range a.options {
		set, ok := specs[name]
		if !ok {
			return t, fmt.Errorf("open knows no option %s", name)
		}
		if err := set(&t, text, begin); err != nil {
			return t, fmt.Errorf("%s: %w", name, err)
		}
	}
	return t, nil
}

func read[T any](to *T, text string, parse func(string) (T, error)) error {
	v, err := parse(text)
	*to = v
	return err
}

func moment(to *sm.Time, text string, begin sm.Time) error {
	d, err := duration(text)
	*to = begin.Add(d)
	return err
}

func held(t *sm.Task, text string, _ sm.Time) error {
	if text != "yes" {
		return errors.New("want yes")
	}
	t.State = sm.Blocked
	return nil
}

func charge(t *sm.Task, text string, _ sm.Time) error {
	if text != "program" {
		return errors.New("want program")
	}
	t.ChargeProgram = true
	return nil
}

func number(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

func codes(text string) ([]int, error) {
	var all []int
	for word := range strings.SplitSeq(text, ",") {
		code, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		all = append(all, code)
	}
	return all, nil
}
