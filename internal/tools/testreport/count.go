package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

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
