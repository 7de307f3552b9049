package acceptance

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// commandLines are of all kinds that people write, each with something of its own in it.
func commandLines(n int) (lines []string) {
	kinds := []string{
		`echo 'it is "N"' "and 'N'" $((N * 7)) \\ \$HOME`,
		`printf '%%s|' "a  b" '' 'ü жλ 😀' N`,
		`echo out N; echo err N >&2; exit $((N %% 5))`,
		`printf 'a,b;"N"\r\nsecond line\n\n'`,
		`printf '\377\200 N'; echo note N >&2`,
		`ls; echo N > out.dat; cat out.dat`,
		`no-such-command-N 2>/dev/null`,
		`# N: nothing at all`,
		`(echo inner N; exit 3) || exit 4`,
		`for i in 1 2 3; do echo "$i: N"; done | sort -r`,
	}
	for i := range n {
		lines = append(lines, strings.ReplaceAll(strings.ReplaceAll(kinds[i%len(kinds)], "%%", "%"), "N", strconv.Itoa(i)))
	}
	return lines
}

// printed is what a loop in a shell gets of a line.
func printed(t *testing.T, line string) (output, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir = t.TempDir()
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	var exit *exec.ExitError
	if e := cmd.Run(); errors.As(e, &exit) {
		code = exit.ExitCode()
	} else if e != nil {
		t.Fatal(e)
	}
	return out.String(), err.String(), code
}

// A thousand command lines with quotes, unicode and failures, on two workers with empty disks and nothing but Redis: what is
// collected is what a loop would have printed.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "slots=2")
	w.server(t)
	for _, name := range []string{"one", "two"} {
		w.worker(t, name, "program_dir="+w.own(t, "empty-"+name))
	}
	lines := commandLines(1000)
	w.manage(t, 0, "submit", "--each-line", w.file(t, "lines", strings.Join(lines, "\n")+"\n", 0o644))
	w.manage(t, 1, "wait", "all")
	text, said := w.manage(t, 0, "results", "--csv")
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != len(lines)+1 || said != "" {
		t.Fatalf("%d rows, %v, and on stderr: %s", len(rows), err, said)
	}
	column := func(row []string, name string) string {
		value := row[slices.Index(rows[0], name)]
		if slices.Contains(strings.Fields(row[slices.Index(rows[0], "base64")]), name) {
			raw, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
		return value
	}
	workers := map[string]int{}
	for i, row := range rows[1:] {
		output, stderr, code := printed(t, lines[i])
		state := "succeeded"
		if code != 0 {
			state = "failed"
		}
		if code != 0 && stderr == "" {
			stderr = fmt.Sprintf("exit status %d", code)
		}
		workers[column(row, "worker")]++
		for name, want := range map[string]string{
			"id": strconv.Itoa(i + 1), "state": state, "exit_code": strconv.Itoa(code), "output": output, "error": stderr,
		} {
			// csv.Reader takes the end of a line for one byte, wherever it is.
			if got := column(row, name); got != strings.ReplaceAll(want, "\r\n", "\n") {
				t.Errorf("%s\n%s is %q, want %q", lines[i], name, got, want)
			}
		}
	}
	if n := strings.Count(text, "\"\"\r\nsecond line\n\n\","); n != len(lines)/10 {
		t.Errorf("%d outputs have the ends of their lines, want %d", n, len(lines)/10)
	}
	if len(workers) != 2 {
		t.Errorf("the tasks ran on %v", workers)
	}
}
