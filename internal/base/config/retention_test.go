package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/statemachine"
)

// Each outcome gets its own entry, or that of all others; what is kept for ever is not named.
func TestRetention(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	all := func(age time.Duration, most int64, but ...Retention) (list []Retention) {
		for _, outcome := range statemachine.Outcomes() {
			r := Retention{outcome, age, most}
			for _, b := range but {
				if b.Outcome == outcome {
					r = b
				}
			}
			if r.Age > 0 || r.Most >= 0 {
				list = append(list, r)
			}
		}
		return list
	}
	for text, want := range map[string][]Retention{
		"off": nil, "": nil, "None": nil, "unlimited": nil,
		"7d":                               all(7*day, -1),
		"0":                                all(0, 0),
		"90s 1000":                         all(90*time.Second, 1000),
		"1.5h, failed 4w 7":                all(90*time.Minute, -1, Retention{statemachine.Failed, 28 * day, 7}),
		"failed 30m":                       {{statemachine.Failed, 30 * time.Minute, -1}},
		"5, timed_out inf, failed 1000 2d": all(0, 5, Retention{statemachine.TimedOut, 0, -1}, Retention{statemachine.Failed, 2 * day, 1000}),
	} {
		var got []Retention
		if err := retention(&got).parse(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (- want, + got):\n%s", text, diff)
		}
	}
}
