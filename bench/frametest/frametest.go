// Package frametest has what tests of benchmarks share.
package frametest

import (
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/bench/frame"
)

// Build makes tdf-server and tdf-worker and returns the directory they are in. It is for packages right below bench.
func Build(tb testing.TB) string {
	tb.Helper()
	bin := tb.TempDir()
	cmd := exec.CommandContext(tb.Context(), "go", "build", "-o", bin, "../../cmd/tdf-server", "../../cmd/tdf-worker")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// Matches looks for each of the regular expressions in what a benchmark has printed.
func Matches(tb testing.TB, printed string, rows ...string) {
	tb.Helper()
	for _, row := range rows {
		if !regexp.MustCompile(row).MatchString(printed) {
			tb.Errorf("no %s in\n%s", row, printed)
		}
	}
}

// Has looks for each of the texts.
func Has(tb testing.TB, printed string, texts ...string) {
	tb.Helper()
	for _, text := range texts {
		Matches(tb, printed, regexp.QuoteMeta(text))
	}
}

// Refuses runs a benchmark with each of the arguments, separated by blanks, and looks for the text in its error.
func Refuses(tb testing.TB, run frame.Run, cases map[string]string) {
	tb.Helper()
	for args, says := range cases {
		err := run(tb.Context(), strings.Fields(args), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), says) {
			tb.Errorf("%s: %v, want %q", args, err, says)
		}
	}
}
