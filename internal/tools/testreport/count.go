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
	pkg, test, reason string
}

// counts is what became of the tests. Subtests count as tests.
type counts struct {
	passed, failed int
	skips          []skip

	output   map[[2]string]*strings.Builder // by package and test, until the test ends
	failedIn map[string]bool                // packages with a failed test
	broken   []string                       // packages that failed without one
}

// count adds up a stream of events.
func count(r io.Reader) (*counts, error) {
	c := &counts{output: map[[2]string]*strings.Builder{}, failedIn: map[string]bool{}}
	decoder := json.NewDecoder(r)
	for {
		var e event
		err := decoder.Decode(&e)
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return nil, fmt.Errorf("test events: %w", err)
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
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "output":
		if c.output[key] == nil {
			c.output[key] = &strings.Builder{}
		}
		_, _ = c.output[key].WriteString(e.Output)
		return
	case "pass":
		c.passed++
	case "fail":
		c.failed++
		c.failedIn[e.Package] = true
	case "skip":
		c.skips = append(c.skips, skip{e.Package, e.Test, reason(c.output[key])})
	default:
		return
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
