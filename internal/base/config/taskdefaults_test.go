package config

import (
	"errors"
	"maps"
	"testing"

	"github.com/tdf-go/tdf/task"
)

// defaultsWith loads a configuration with some lines in [task_defaults].
func defaultsWith(t *testing.T, lines map[string]string) (TaskDefaults, error) {
	t.Helper()
	var settings []string
	for name, text := range lines {
		settings = append(settings, "task_defaults."+name+"="+text)
	}
	f, err := load(t, minimal, ForManager, WithSettings(settings...))
	if err != nil {
		return TaskDefaults{}, err
	}
	return f.TaskDefaults, nil
}

// TestTaskDefaultsAreCanonical: of each value the one text is kept, that of records.
func TestTaskDefaultsAreCanonical(t *testing.T) {
	t.Parallel()
	d, err := defaultsWith(t, map[string]string{
		"start_after": "5", "end_before": "6.5", "timeout": "2m", "max_fails": "1", "max_timeouts": "inf", "max_losses": "0", "fail_on": "exit",
		"max_faults": "4", "on_cut": "fail", "charge": "program", "workdir": "shared", "retry_delay": "1m", "retry_backoff": "2.0", "retry_max_delay": "1h", "retry_jitter": "0.5",
		"retry_exit_codes": "75, 2", "fatal_exit_codes": "1", "queue": "q", "env": "python", "labels": "b=1,a=1", "resources": "mem=2 gpu=1", "priority": "-3",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := task.Defaults{
		"start_after": "5", "end_before": "6.5", "timeout": "120", "max_fails": "1", "max_timeouts": "inf", "max_losses": "0", "fail_on": "exit",
		"max_faults": "4", "on_cut": "fail", "charge": "program", "workdir": "shared", "retry_delay": "60", "retry_backoff": "2", "retry_max_delay": "3600", "retry_jitter": "0.5",
		"retry_exit_codes": "2,75", "fatal_exit_codes": "1", "queue": "q", "env": "python", "labels": "a=1,b=1", "resources": "gpu=1,mem=2", "priority": "-3",
	}
	if !maps.Equal(d.Defaults, want) {
		t.Errorf("got %v, want %v", d.Defaults, want)
	}
}

func TestTaskDefaultsRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		key, text string
		sentinel  error
	}{
		{"timeout", "NaN", ErrInvalid},
		{"max_fails", "-1", ErrInvalid},
		{"fail_on", "stdout", ErrInvalid},
		{"queue", "a b", ErrInvalid},
		{"start_after", "inf", ErrInvalid},
		{"max_fial", "1", ErrUnknown},
		{"step", "1", ErrUnknown},
	} {
		var e *Error
		_, err := defaultsWith(t, map[string]string{tc.key: tc.text})
		if !errors.As(err, &e) || e.Key != tc.key || e.Remedy == "" || !errors.Is(err, tc.sentinel) {
			t.Errorf("%s=%s: %v", tc.key, tc.text, err)
		}
	}
	if _, err := defaultsWith(t, map[string]string{"start_after": "2", "end_before": "1"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("start after end: %v", err)
	}
}

// TestDefaultsOfQueues: what a queue can give to its tasks, a configuration can
// too, with the same text.
func TestDefaultsOfQueues(t *testing.T) {
	t.Parallel()
	some := map[string]string{
		"on_cut": "keep", "charge": "all", "workdir": "private", "env": "python", "fail_on": "any", "labels": "a=1,b=2", "resources": "gpu=1", "retry_jitter": "0.25",
		"retry_exit_codes": "1,2", "fatal_exit_codes": "3",
	}
	for _, name := range task.DefaultNames() {
		if name == "archive" { // a program that is configured and has handlers must get its tasks
			continue
		}
		text := some[name]
		if text == "" {
			text = "7"
		}
		if d, err := defaultsWith(t, map[string]string{name: text}); err != nil || d.Defaults[name] != text {
			t.Errorf("%s: %q, %v", name, d.Defaults[name], err)
		}
	}
}
