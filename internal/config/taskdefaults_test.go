package config

import (
	"errors"
	"math"
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
	if d.StartAfterSeconds() != 5 || d.EndBeforeSeconds() != 6.5 || d.TimeoutSeconds() != 120 || d.Timeout != "120" {
		t.Errorf("numbers: %+v", d)
	}
	if d.MaxFailsCount() != 1 || d.MaxTimeoutsCount() != math.MaxInt || d.MaxLossesCount() != 0 || d.FailOn != "exit" {
		t.Errorf("counts: %+v", d)
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
