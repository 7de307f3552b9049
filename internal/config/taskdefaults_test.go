package config

import (
	"errors"
	"strings"
	"testing"
)

func TestTaskDefaultsSet(t *testing.T) {
	t.Parallel()
	d := mustLoad(t, minimal, ForManager).TaskDefaults
	for key, text := range map[string]string{
		"start_after": "5", "end_before": "6.5", "timeout": "2m", "max_fails": "1", "max_timeouts": "inf", "max_losses": "0", "fail_on": "exit",
	} {
		if err := d.Set(key, text); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if err := d.Check(); err != nil {
		t.Error(err)
	}
	want := TaskDefaults{StartAfter: "5", EndBefore: "6.5", Timeout: "120", MaxFails: "1", MaxTimeouts: "inf", MaxLosses: "0", FailOn: FailOnExit}
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

// TestFailOnWords: one list of words, the first of which a task does not store.
func TestFailOnWords(t *testing.T) {
	t.Parallel()
	for i, word := range FailOnWords() {
		want := word
		if i == 0 {
			want = ""
		}
		d := TaskDefaults{FailOn: "before"}
		if err := d.Set("fail_on", word); err != nil || d.FailOn != want {
			t.Errorf("%s: %q, %v", word, d.FailOn, err)
		}
	}
	var d TaskDefaults
	err := d.Set("fail_on", "stdout")
	for _, word := range FailOnWords() {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("the remedy does not name %s: %v", word, err)
		}
	}
}
