package scenario

import (
	"fmt"
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
var options = []string{"start_after", "end_before", "timeout", "max_fails", "max_timeouts", "max_losses", "grace", "by"}

func parseArgs(words []string) (*args, error) {
	a := &args{options: map[string]string{}}
	for _, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok {
			a.words = append(a.words, w)
			continue
		}
		known := false
		for _, o := range options {
			known = known || o == name
		}
		if !known {
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

// spec reads the options of open. Times count from begin.
func (a *args) spec(begin sm.Time) (sm.Task, error) {
	t := sm.Task{EndBefore: sm.Never, Timeout: sm.Forever, MaxLosses: sm.DefaultMaxLosses}
	for name, value := range a.options {
		var d sm.Duration
		var err error
		switch name {
		case "start_after":
			d, err = duration(value)
			t.StartAfter = begin.Add(d)
		case "end_before":
			d, err = duration(value)
			t.EndBefore = begin.Add(d)
		case "timeout":
			t.Timeout, err = duration(value)
		case "max_fails":
			t.MaxFails, err = sm.ParseLimit(value)
		case "max_timeouts":
			t.MaxTimeouts, err = sm.ParseLimit(value)
		case "max_losses":
			t.MaxLosses, err = sm.ParseLimit(value)
		default:
			err = fmt.Errorf("open knows no option %s", name)
		}
		if err != nil {
			return t, fmt.Errorf("%s: %w", name, err)
		}
	}
	return t, nil
}
