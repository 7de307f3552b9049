// Command testreport reads the events of one or more runs of go test -json, prints
// each skipped test with its reason and each failed one with what it said first, and
// ends with a line "N passed, N failed, N skipped". It exits with 1 if a test failed,
// if none ran, or if one was skipped that the list of allowed skips does not name.
//
//	testreport -allow scripts/allowed-skips.txt bin/test-events.json
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

func main() {
	allowFile := flag.String("allow", "", "`file` with the tests that may be skipped")
	flag.Parse()
	ok, err := run(os.Stdout, *allowFile, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run writes the report and tells whether the tests may pass.
func run(w io.Writer, allowFile string, args []string) (bool, error) {
	if len(args) == 0 {
		return false, errors.New("want the files of test events as arguments, got none")
	}
	allow, err := readAllowed(allowFile)
	if err != nil {
		return false, err
	}
	r := results{ended: map[testName]string{}, said: map[testName][]string{}}
	for _, file := range args {
		if err := r.read(file); err != nil {
			return false, fmt.Errorf("test events: %w", err)
		}
	}
	return r.report(w, allow), nil
}

// module is cut off the import paths.
const module = "github.com/tdf-go/tdf/"

// readAllowed reads the list of tests that may be skipped: one a line, a
// pattern and a reason; lines that begin with # are comments.
func readAllowed(file string) ([]string, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("allowed skips: %w", err)
	}
	var patterns []string
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, why, _ := strings.Cut(line, " ")
		if strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("%s line %d: %q has no reason: write PACKAGE.TEST, a space and why", file, i+1, pattern)
		}
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("%s line %d: pattern %q: %w", file, i+1, pattern, err)
		}
		patterns = append(patterns, pattern)
	}
	return patterns, nil
}

// failAction is the action of a test or package that failed.
const failAction = "fail"

// event is one line of go test -json, see go doc test2json.
type event struct {
	Action  string `json:"Action"`
	Package string `json:"Package"`
	Test    string `json:"Test"`
	Output  string `json:"Output"`
}

// results is what became of the tests, subtests included. One that ran several times
// counts once, and has failed if it failed once.
type results struct {
	ended  map[testName]string // pass, skip or fail
	skips  []remark
	fails  []remark
	broken []string              // packages that failed without a failed test
	said   map[testName][]string // until the test ends
}

// remark is a test that was skipped or has failed, and why.
type remark struct {
	testName
	reason string
}

type testName struct{ pkg, test string }

// String is how lists call a test: the package without the module, a dot, the test.
func (n testName) String() string { return strings.TrimPrefix(n.pkg, module) + "." + n.test }

// read adds up the events of a file.
func (r *results) read(file string) error {
	events, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = events.Close() }()
	for decoder := json.NewDecoder(events); ; {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		r.add(e)
	}
}

func (r *results) add(e event) {
	name := testName{e.Package, e.Test}
	switch {
	case e.Action == failAction && e.Test == "":
		// It does not compile, its TestMain failed, or it was killed.
		if !r.hasFailure(e.Package) {
			r.broken = append(r.broken, e.Package)
		}
	case e.Test == "":
	case e.Action == "output":
		r.said[name] = append(r.said[name], e.Output)
	case e.Action == "pass" || e.Action == "skip" || e.Action == failAction:
		first := r.ended[name] == ""
		if first && e.Action == "skip" {
			r.skips = append(r.skips, remark{name, reason(r.said[name])})
		}
		if e.Action == failAction {
			r.fails = append(r.fails, remark{name, complaint(r.said[name])})
		}
		if first || e.Action == failAction {
			r.ended[name] = e.Action
		}
		delete(r.said, name)
	}
}

// hasFailure reports whether a test of the package has failed.
func (r *results) hasFailure(pkg string) bool {
	for name, action := range r.ended {
		if name.pkg == pkg && action == failAction {
			return true
		}
	}
	return false
}

// reason finds what a test said when it was skipped: its output without the
// lines of the test runner.
func reason(output []string) string {
	var lines []string
	for line := range strings.Lines(strings.Join(output, "")) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			lines = append(lines, line)
		}
	}
	return cmp.Or(strings.Join(lines, " "), "no reason given")
}

// complaint is the first of what a test that failed said itself: most of the rest is
// the log of a program.
func complaint(output []string) string {
	const most, width = 5, 300
	var lines []string
	for line := range strings.Lines(strings.Join(output, "")) {
		line = strings.TrimSpace(line)
		if len(lines) < most && (strings.Contains(line, "_test.go:") || strings.HasPrefix(line, "panic:")) {
			lines = append(lines, "\n\t"+strings.ToValidUTF8(line[:min(len(line), width)], ""))
		}
	}
	return strings.Join(lines, "")
}

// report writes what was skipped, has failed and is broken, and the closing line, and tells
// whether all is well.
func (r *results) report(w io.Writer, allow []string) bool {
	count := map[string]int{failAction: len(r.broken)}
	for _, action := range r.ended {
		count[action]++
	}
	ok := count[failAction] == 0
	for _, s := range r.skips {
		verdict := "skipped"
		if !slices.ContainsFunc(allow, func(pattern string) bool { match, _ := path.Match(pattern, s.String()); return match }) {
			verdict, ok = "skipped, not allowed", false
		}
		fmt.Fprintf(w, "%s: %s: %s\n", verdict, s.testName, s.reason)
	}
	for _, f := range r.fails {
		fmt.Fprintf(w, "failed: %s%s\n", f.testName, f.reason)
	}
	for _, pkg := range r.broken {
		fmt.Fprintf(w, "package failed outside its tests: %s\n", pkg)
	}
	if count["pass"]+count[failAction] == 0 {
		fmt.Fprintln(w, "no test ran")
		ok = false
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", count["pass"], count[failAction], len(r.skips))
	return ok
}
