package task_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/task"
)

// Of a limit that is not said the default counts; one of 0 is another.
func TestLimit(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		limit      task.Limit
		n          int
		json, text string // of a record, with 4 as the default
	}{
		{"", 0, "null", "4"}, {task.AtMost(0), 0, "0", "0"}, {task.AtMost(3), 3, "3", "3"}, {task.Unlimited, math.MaxInt, "null", "inf"},
	} {
		text, err := json.Marshal(tc.limit)
		if tc.limit.N() != tc.n || err != nil || string(text) != tc.json {
			t.Errorf("%q: %d, %s, %v", tc.limit, tc.limit.N(), text, err)
		}
		d, err := task.Define(&task.Spec{Program: "p", Retry: task.Retry{Limit: tc.limit}}, task.Defaults{"max_fails": "4"})
		if got := d.Text("max_fails"); err != nil || got != tc.text {
			t.Errorf("%q: max_fails %s, %v, want %s", tc.limit, got, err, tc.text)
		}
	}
	_, err := task.Define(&task.Spec{Program: "p", MaxLosses: task.AtMost(-7)})
	refused(t, err, "max_losses")
	if !strings.Contains(err.Error(), "-7") || !strings.Contains(err.Error(), "unlimited") {
		t.Errorf("%v, want it to name the value and what can be", err)
	}
}

// A negative duration or factor turns the setting off, whatever the defaults are.
func TestNegativeIsNone(t *testing.T) {
	t.Parallel()
	defaults := task.Defaults{
		"start_after": "5", "end_before": "6", "timeout": "7", "retry_delay": "8", "retry_max_delay": "9", "retry_jitter": "0.5",
	}
	spec := task.Spec{Program: "p", StartIn: -1, EndIn: -1, Timeout: -time.Hour, Retry: task.Retry{Delay: -1, MaxDelay: -1, Jitter: -1}}
	for from, wanted := range map[*task.Spec]task.Defaults{
		{Program: "p"}: defaults,
		&spec: {
			"start_after": "0", "end_before": "inf", "timeout": "inf", "retry_delay": "0", "retry_max_delay": "inf", "retry_jitter": "0",
		},
	} {
		d, err := task.Define(from, defaults)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range wanted {
			if got := d.Text(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
	var set task.Spec
	for name := range defaults {
		text, _ := spec.Text(name)
		if err := set.Set(name, text, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	if set.StartIn >= 0 || set.EndIn >= 0 || set.Timeout >= 0 || set.Retry.Delay >= 0 || set.Retry.MaxDelay >= 0 || set.Retry.Jitter >= 0 {
		t.Errorf("%+v, want what was set to none negative", set)
	}
}

func TestFrom(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	got := task.Spec{StartIn: time.Minute, EndIn: time.Hour}.From(now)
	if got.StartIn != 0 || got.EndIn != 0 || got.StartAfter.Unix() != 1060 || got.EndBefore.Unix() != 4600 {
		t.Errorf("%+v", got)
	}
	if got = (task.Spec{StartIn: -1, EndIn: -1}).From(now); got.StartIn != -1 || got.EndIn != -1 || !got.StartAfter.IsZero() || !got.EndBefore.IsZero() {
		t.Errorf("%+v", got)
	}
}
