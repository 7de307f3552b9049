package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/task"
)

func TestTaskDefaultsSet(t *testing.T) {
	t.Parallel()
	d := mustLoad(t, minimal, ForManager).TaskDefaults
	for key, text := range map[string]string{
		"start_after": "5", "end_before": "6.5", "timeout": "2m", "max_fails": "1", "max_timeouts": "inf", "max_losses": "0", "fail_on": "exit",
		"max_faults": "4", "charge": "program", "retry_delay": "1m", "retry_backoff": "2.0", "retry_max_delay": "1h", "retry_jitter": "0.5",
		"retry_exit_codes": "75, 2", "fatal_exit_codes": "1", "queue": "q", "env": "python", "labels": "b=1,a=1", "resources": "mem=2 gpu=1", "priority": "-3",
	} {
		if err := d.Set(key, text); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if err := d.Check(); err != nil {
		t.Error(err)
	}
	want := TaskDefaults{StartAfter: "5", EndBefore: "6.5", Timeout: "120", MaxFails: "1", MaxTimeouts: "inf", MaxLosses: "0", FailOn: FailOnExit,
		MaxFaults: "4", Charge: ChargeProgram, RetryDelay: "60", RetryBackoff: "2", RetryMaxDelay: "3600", RetryJitter: "0.5",
		RetryExitCodes: "2,75", FatalExitCodes: "1", Queue: "q", Env: "python", Labels: "a=1,b=1", Resources: "gpu=1,mem=2", Priority: -3}
	if d != want {
		t.Errorf("got %+v, want %+v", d, want)
	}
}

func TestTaskDefaultsSetRefuses(t *testing.T) {
	t.Parallel()
	d := mustLoad(t, minimal, ForManager).TaskDefaults
	before := d
	for _, tc := range []struct {
		key, text string
		sentinel  error
	}{
		{"timeout", "NaN", ErrInvalid},
		{"max_fails", "-1", ErrInvalid},
		{"max_fial", "1", ErrUnknown},
	} {
		var e *Error
		err := d.Set(tc.key, tc.text)
		if !errors.As(err, &e) || e.Key != tc.key || e.Remedy == "" || !errors.Is(err, tc.sentinel) {
			t.Errorf("%s=%s: %v", tc.key, tc.text, err)
		}
	}
	if d != before {
		t.Errorf("a refused value was taken: %+v", d)
	}
	d.StartAfter, d.EndBefore = "2", "1"
	if err := d.Check(); !errors.Is(err, ErrInvalid) {
		t.Errorf("start after end: %v", err)
	}
}

// TestWordsWithADefault: one list of words, the first of which a task does not store.
func TestWordsWithADefault(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		key   string
		words []string
		at    func(d *TaskDefaults) *string
	}{
		{"fail_on", FailOnWords(), func(d *TaskDefaults) *string { return &d.FailOn }},
		{"charge", ChargeWords(), func(d *TaskDefaults) *string { return &d.Charge }},
	} {
		for i, word := range tc.words {
			want := word
			if i == 0 {
				want = ""
			}
			var d TaskDefaults
			*tc.at(&d) = "before"
			if err := d.Set(tc.key, word); err != nil || *tc.at(&d) != want {
				t.Errorf("%s=%s: %q, %v", tc.key, word, *tc.at(&d), err)
			}
		}
		var d TaskDefaults
		err := d.Set(tc.key, "stdout")
		for _, word := range tc.words {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("the remedy does not name %s: %v", word, err)
			}
		}
	}
}

// TestDefaultsOfQueues: what a queue can give to its tasks, a configuration can
// too, with the same text.
func TestDefaultsOfQueues(t *testing.T) {
	t.Parallel()
	some := map[string]string{
		"charge": "all", "env": "python", "fail_on": "any", "labels": "a=1,b=2", "resources": "gpu=1", "retry_jitter": "0.25",
		"retry_exit_codes": "1,2", "fatal_exit_codes": "3",
	}
	for _, name := range task.DefaultNames() {
		text := some[name]
		if text == "" {
			text = "7"
		}
		if got, err := task.ParseDefault(name, text); err != nil || got != text {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		var d TaskDefaults
		if err := d.Set(name, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
