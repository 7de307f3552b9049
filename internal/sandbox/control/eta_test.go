package control

import (
	"strings"
	"testing"
	"time"
)

// The last good eta counts, also without a line feed; what is no time is named.
func TestETA(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		at   int64
		warn string
	}{
		"":                             {},
		"etas=1\neta\n":                {},
		"eta=1800000000\n":             {at: 1800000000},
		"eta=1800000000.75":            {at: 1800000000},
		" eta = 2027-01-15T08:00:00Z ": {at: 1800000000},
		"eta=2027-01-15T09:00:00+01:00\nresult=1\n": {at: 1800000000},
		"eta=1800000000\neta=tomorrow\n":            {at: 1800000000, warn: `not "tomorrow"`},
		"eta=5\neta=6\nprogress=0.5\n":              {at: 6},
		"eta=\n":                                    {warn: `not ""`},
		"eta=-5\n":                                  {warn: `not "-5"`},
		"eta=NaN\n":                                 {warn: `not "NaN"`},
		"eta=inf\n":                                 {warn: `not "inf"`},
		"eta=1e300\n":                               {warn: `not "1e300"`},
		"eta=253402300799\n":                        {at: 253402300799},
		"eta=253402300800\n":                        {warn: "seconds since 1970"},
		"x eta=5\n":                                 {},
		"eta=7\n" + strings.Repeat("progress=0.1\n", 10000): {at: 7},
	} {
		r := reader(t)
		say(t, r, text)
		if _, _, err := r.Result(); err != nil {
			t.Errorf("%.60q: %v", text, err)
		}
		got := r.ETA()
		if want.at == 0 && !got.IsZero() || want.at != 0 && got.Unix() != want.at || want.at != 0 && got.Location() != time.UTC {
			t.Errorf("%.60q: %v, want %d", text, got, want.at)
		}
		warned := strings.Join(r.Warnings(), "\n")
		if want.warn == "" && warned != "" || !strings.Contains(warned, want.warn) {
			t.Errorf("%.60q: warns %q, want %q", text, warned, want.warn)
		}
		if _, _, err := r.Poll(); err != nil {
			t.Error(err)
		}
	}
}
