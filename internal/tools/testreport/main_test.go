package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const passed = `{"Action":"pass","Package":"github.com/tdf-go/tdf/worker","Test":"TestA"}
{"Action":"pass","Package":"github.com/tdf-go/tdf/worker"}
`

const skipped = `{"Action":"output","Package":"github.com/tdf-go/tdf/worker","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"github.com/tdf-go/tdf/worker","Test":"TestB","Output":"    b_test.go:3: needs rsync\n"}
{"Action":"output","Package":"github.com/tdf-go/tdf/worker","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"github.com/tdf-go/tdf/worker","Test":"TestB"}
{"Action":"skip","Package":"github.com/tdf-go/tdf/empty"}
`

const failed = `{"Action":"output","Package":"p","Test":"TestC","Output":"=== RUN   TestC\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:7: 2 calls, want 1\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"        {\"level\":\"info\"}\n"}
{"Action":"fail","Package":"p","Test":"TestC"}
{"Action":"fail","Package":"p"}
`

const again = `{"Action":"pass","Package":"p","Test":"TestC"}
`

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestReport(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		events, allow string
		ok            bool
		want          []string
	}{
		"all pass": {passed, "", true, []string{"1 passed, 0 failed, 0 skipped\n"}},
		"failure": {passed + failed, "", false,
			[]string{"failed: p.TestC\n\tc_test.go:7: 2 calls, want 1\n1 passed, 1 failed, 0 skipped\n"}},
		"does not compile": {passed + `{"Action":"fail","Package":"q"}`, "", false,
			[]string{"package failed outside its tests: q\n", "1 passed, 1 failed, 0 skipped\n"}},
		"skip not allowed": {passed + skipped, "worker.TestX is allowed", false,
			[]string{"skipped, not allowed: worker.TestB: b_test.go:3: needs rsync\n", "1 passed, 0 failed, 1 skipped\n"}},
		"skip allowed": {passed + skipped, "# list\nworker.TestB no rsync on this system", true,
			[]string{"skipped: worker.TestB: b_test.go:3: needs rsync\n", "1 passed, 0 failed, 1 skipped\n"}},
		"skip allowed by pattern": {passed + skipped, "worker.Test* a reason", true, nil},
		"failed once of three":    {passed + again + failed + again, "", false, []string{"1 passed, 1 failed, 0 skipped\n"}},
		"nothing ran":             {"", "", false, []string{"no test ran\n0 passed, 0 failed, 0 skipped\n"}},
		"everything skipped":      {skipped, "worker.TestB a reason", false, []string{"no test ran\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			ok, err := run(&out, write(t, tc.allow), []string{write(t, tc.events)})
			if err != nil || ok != tc.ok {
				t.Errorf("ok = %v, %v; want %v", ok, err, tc.ok)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("output\n%s\nlacks %q", out.String(), want)
				}
			}
			if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); !strings.HasSuffix(lines[len(lines)-1], " skipped") {
				t.Errorf("last line is %q, want the counts", lines[len(lines)-1])
			}
		})
	}
}

// The tests of several runs are added up.
func TestSeveralFiles(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	ok, err := run(&out, "", []string{write(t, passed), write(t, again)})
	if err != nil || !ok || out.String() != "2 passed, 0 failed, 0 skipped\n" {
		t.Errorf("ok = %v, %v:\n%s", ok, err, out.String())
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		allow string
		args  []string
	}{
		"no file":             {"", nil},
		"file missing":        {"", []string{filepath.Join(t.TempDir(), "none")}},
		"list missing":        {filepath.Join(t.TempDir(), "none"), []string{write(t, passed)}},
		"list without reason": {write(t, "worker.TestB"), []string{write(t, passed)}},
		"list with bad glob":  {write(t, "worker.[ why"), []string{write(t, passed)}},
		"not JSON":            {"", []string{write(t, "oops")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if ok, err := run(&strings.Builder{}, tc.allow, tc.args); err == nil || ok {
				t.Errorf("ok = %v without an error", ok)
			}
		})
	}
}
