package control

import (
	"strings"
	"testing"
)

// The last status counts, also without a line feed. Another text counts as 2, and is named.
func TestStatus(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		status int
		warn   string
	}{
		"":                       {},
		"statuses=3\nstatus\n":   {},
		"status=1":               {status: 1},
		"x=1\n status = 7 \nx=1": {status: 7},
		"status=1\nstatus=5\n":   {status: 5},
		"status=3\nresult=1\n":   {status: 3},
		"status=2147483647\n":    {status: 2147483647},
		"status=2147483648\n":    {status: 2, warn: `not "2147483648"`},
		"status=0\n":             {status: 2, warn: `not "0"`},
		"status=-1\n":            {status: 2, warn: `not "-1"`},
		"status=abc\n":           {status: 2, warn: `not "abc": it counts as 2`},
		"status=\n":              {status: 2, warn: `not ""`},
		"status=07\n":            {status: 2, warn: `not "07"`},
		"status=abc\nstatus=1\n": {status: 1, warn: `not "abc"`},
	} {
		r := reader(t)
		say(t, r, text)
		if _, _, err := r.Result(); err != nil {
			t.Fatal(err)
		}
		if got := r.Status(); got != want.status {
			t.Errorf("%q: %d, want %d", text, got, want.status)
		}
		if warnings := strings.Join(r.Warnings(), "\n"); !strings.Contains(warnings, want.warn) || want.warn == "" && warnings != "" {
			t.Errorf("%q: warnings %q, want %q", text, warnings, want.warn)
		}
	}
}
