package control

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestResult(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("r", MaxResult)
	for text, want := range map[string]struct {
		result string
		ok     bool
		err    error
	}{
		"":                                     {},
		"progress=0.5\nresults=1\n":            {},
		"result\n":                             {},
		"result=42\n":                          {result: "42", ok: true},
		"result=42":                            {result: "42", ok: true}, // the program is over
		"result=1\nprogress=1\nresult=2\nx=\n": {result: "2", ok: true},
		"result=\n":                            {ok: true},
		" result = a=b \xff\x00\r\n":           {result: " a=b \xff\x00\r", ok: true}, // byte for byte
		"x\n result=1":                         {result: "1", ok: true},
		"x result=1\n":                         {},
		"result=" + longest + "\n":             {result: longest, ok: true},
		"result=" + longest + "r\n":            {err: ErrResultTooLong},
		"result=" + longest + longest:          {err: ErrResultTooLong},
		"result=" + longest + longest + "\nresult=1\n":            {result: "1", ok: true},
		"result=1\n" + strings.Repeat("x", 99<<10) + "result=2\n": {result: "1", ok: true},
		"result=1\n" + strings.Repeat("progress=0.1\n", 10000):    {result: "1", ok: true},
	} {
		r := reader(t)
		say(t, r, text)
		result, ok, err := r.Result()
		if result != want.result || ok != want.ok || !errors.Is(err, want.err) {
			t.Errorf("%.60q: %.60q, %v, %v", text, result, ok, err)
		}
		if _, _, err := r.Poll(); err != nil {
			t.Error(err)
		}
		if w := strings.Join(r.Warnings(), ""); strings.Contains(w, `"result"`) && strings.Contains(w, "unknown") {
			t.Errorf("%.60q: %s", text, w)
		}
	}
}

// What stands before the part that is searched may be a result.
func TestResultMissed(t *testing.T) {
	t.Parallel()
	r := reader(t)
	if _, ok, err := r.Result(); ok || err != nil {
		t.Errorf("without a file: %v, %v", ok, err)
	}
	say(t, r, "result=1\n")
	if err := os.Truncate(r.Path, maxSearched+1); err != nil { // a hole
		t.Fatal(err)
	}
	if _, ok, err := r.Result(); ok || !errors.Is(err, ErrResultMissed) || !strings.Contains(err.Error(), r.Path) {
		t.Errorf("got %v, %v", ok, err)
	}
	say(t, r, "result=1")
	if _, ok, _ := r.Result(); ok {
		t.Error("the end of a line was taken for one")
	}
	say(t, r, "\nresult=2\n")
	if text, ok, err := r.Result(); text != "2" || !ok || err != nil {
		t.Errorf("got %q, %v, %v", text, ok, err)
	}
	r = reader(t)
	if err := os.Symlink("/etc/passwd", r.Path); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := r.Result(); ok || !errors.Is(err, ErrRefused) {
		t.Errorf("got %v, %v", ok, err)
	}
}
