// Command testreport reads the events of one or more runs of go test -json, prints
// each skipped test with its reason, and ends with a line "N passed, N failed,
// N skipped". It exits with 1 if a test failed, if none ran, or if one was skipped
// that the list of allowed skips does not name.
//
//	testreport -allow scripts/allowed-skips.txt bin/test-events.json
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
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
	c := newCounts()
	for _, file := range args {
		if err := c.addFile(file); err != nil {
			return false, err
		}
	}
	return c.report(w, allow), nil
}

func (c *counts) addFile(name string) error {
	events, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("test events: %w", err)
	}
	defer func() { _ = events.Close() }()
	return c.add(events)
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

func (s skip) allowed(patterns []string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(p, s.String()); ok {
			return true
		}
	}
	return false
}

// event is one line of go test -json, see go doc test2json.
type event struct {
	Action  string `json:"Action"`
	Package string `json:"Package"`
	Test    string `json:"Test"`
	Output  string `json:"Output"`
}

// skip is a test that was skipped.
type skip struct {
	testName
	reason string
}

// counts is what became of the tests. Subtests count as tests. One that ran several
// times counts once, and has failed if it failed once.
type counts struct {
	passed, failed int
	skips          []skip

	output   map[testName]*strings.Builder // until the test ends
	ended    map[testName]string           // the last action of each test
	failedIn map[string]bool               // packages with a failed test
	broken   []string                      // packages that failed without one
}

type testName struct{ pkg, test string }

// String is how lists call a test: the package without the module, a dot, the test.
func (n testName) String() string { return strings.TrimPrefix(n.pkg, module) + "." + n.test }

func newCounts() *counts {
	return &counts{output: map[testName]*strings.Builder{}, ended: map[testName]string{}, failedIn: map[string]bool{}}
}

// add adds up a stream of events.
func (c *counts) add(r io.Reader) error {
	decoder := json.NewDecoder(r)
	for {
		var e event
		err := decoder.Decode(&e)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("test events: %w", err)
		}
		if e.Test == "" {
			c.addPackage(e)
		} else {
			c.addTest(e)
		}
	}
}

// addPackage counts a package that failed although none of its tests did (it
// does not compile, its TestMain failed, it was killed) as one failure.
func (c *counts) addPackage(e event) {
	if e.Action == "fail" && !c.failedIn[e.Package] {
		c.failed++
		c.broken = append(c.broken, e.Package)
	}
}

func (c *counts) addTest(e event) {
	key := testName{e.Package, e.Test}
	before := c.ended[key]
	switch e.Action {
	case "output":
		if c.output[key] == nil {
			c.output[key] = &strings.Builder{}
		}
		_, _ = c.output[key].WriteString(e.Output)
		return
	case "pass":
		if before == "" {
			c.passed++
		}
	case "fail":
		if before == "pass" {
			c.passed--
		}
		if before != "fail" {
			c.failed++
		}
		c.failedIn[e.Package] = true
	case "skip":
		if before == "" {
			c.skips = append(c.skips, skip{key, reason(c.output[key])})
		}
	default:
		return
	}
	if before != "fail" {
		c.ended[key] = e.Action
	}
	delete(c.output, key)
}

// reason finds what a test said when it was skipped: its output without the
// lines of the test runner.
func reason(output *strings.Builder) string {
	if output == nil {
		return "no reason given"
	}
	var lines []string
	for line := range strings.Lines(output.String()) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return "no reason given"
	}
	return strings.Join(lines, " ")
}

// report writes what was skipped and broken and the closing line, and tells
// whether all is well.
func (c *counts) report(w io.Writer, allow []string) bool {
	ok := c.failed == 0
	for _, s := range c.skips {
		verdict := "skipped"
		if !s.allowed(allow) {
			verdict, ok = "skipped, not allowed", false
		}
		fmt.Fprintf(w, "%s: %s: %s\n", verdict, s.testName, s.reason)
	}
	for _, pkg := range c.broken {
		fmt.Fprintf(w, "package failed outside its tests: %s\n", pkg)
	}
	if c.passed+c.failed == 0 {
		fmt.Fprintln(w, "no test ran")
		ok = false
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", c.passed, c.failed, len(c.skips))
	return ok
}
