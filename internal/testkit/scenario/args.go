package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	sm "github.com/tdf-go/tdf/statemachine"
)

// args are the words after a command, and its options of the form name=value.
type args struct {
	words   []string
	options map[string]string
}

// options are all that some command understands.
var options = []string{
	"start_after", "end_before", "timeout", "held", "max_fails", "max_timeouts", "max_losses", "max_faults", "charge",
	"retry_delay", "retry_backoff", "retry_max_delay", "retry_jitter", "retry_exit_codes", "fatal_exit_codes",
	"class", "exit_code", "excused", "random", "grace", "by",
}

func parseArgs(words []string) (*args, error) {
	a := &args{options: map[string]string{}}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok {
			a.words = append(a.words, w)
			continue
		}
		if !slices.Contains(options, name) {
			return nil, fmt.Errorf("no such option: %s", name)
		}
		a.options[name] = value
	}
	return a, nil
}

func (a *args) word(i int) (string, error) {
	if i >= len(a.words) {
		return "", fmt.Errorf("want at least %d words", i+1)
	}
	return a.words[i], nil
}

// duration reads an option; without it, it is 0.
func (a *args) duration(name string) (sm.Duration, error) {
	text, ok := a.options[name]
	if !ok {
		return 0, nil
	}
	return duration(text)
}

func duration(text string) (sm.Duration, error) {
	if text == sm.Forever.Text() {
		return sm.Forever, nil
	}
	d, err := time.ParseDuration(text)
	return sm.Duration(d.Microseconds()), err
}

// yes reads an option that is "yes" or absent.
func (a *args) yes(name string) (bool, error) {
	text, ok := a.options[name]
	if ok && text != "yes" {
		return false, fmt.Errorf("%s: want yes", name)
	}
	return ok, nil
}

// occurrence reads what a command says of o beside who, what and whose.
func (a *args) occurrence(o sm.Occurrence) (sm.Occurrence, error) {
	var graceErr, excusedErr, randomErr, exitErr error
	o.Class = sm.Class(a.options["class"])
	o.Grace, graceErr = a.duration("grace")
	o.Excused, excusedErr = a.yes("excused")
	if text, ok := a.options["random"]; ok {
		o.Random, randomErr = strconv.ParseFloat(text, 64)
	}
	if text, ok := a.options["exit_code"]; ok {
		o.HasExit = true
		o.ExitCode, exitErr = strconv.Atoi(text)
	}
	return o, errors.Join(graceErr, excusedErr, randomErr, exitErr)
}
