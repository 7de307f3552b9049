// Package trial runs tests on copies of the source tree that have been broken on
// purpose: what make mutate and make prove share.
package trial

import (
	"os/exec"
	"regexp"
	"strings"
)

// Suite is some tests of some packages.
type Suite struct {
	// Packages are paths as go test takes them, such as ./server.
	Packages []string
	// Run is the pattern of -run; empty for all tests.
	Run string
}

// String is the suite as arguments of go test.
func (s Suite) String() string {
	text := strings.Join(s.Packages, " ")
	if s.Run != "" {
		text += " -run '" + s.Run + "'"
	}
	return text
}

// Result is how the tests ended.
type Result struct {
	// Green says that all passed.
	Green bool
	// Unbuilt says that nothing was shown, because the tree does not compile, or a
	// script of it.
	Unbuilt bool
	// Found is the innermost test of the first failure. One that hangs or panics is
	// said to have ended the run. Empty if green.
	Found string
	// Output is all that go test has printed.
	Output string
}

// Try runs the tests in a tree until the first failure.
func (s Suite) Try(tree string) Result {
	args := []string{"test", "-failfast", "-timeout=5m"}
	if s.Run != "" {
		args = append(args, "-run", s.Run)
	}
	cmd := exec.Command("go", append(args, s.Packages...)...) //nolint:noctx // the tests have a timeout
	cmd.Dir = tree
	out, err := cmd.CombinedOutput()
	return Judge(string(out), err)
}

// Judge reads what tests have printed that ended with err, nil if all passed.
func Judge(out string, err error) Result {
	r := Result{Green: err == nil, Output: out}
	if r.Green {
		return r
	}
	r.Unbuilt = unbuilt(r.Output)
	r.Found = firstFailure(r.Output)
	return r
}

// unbuilt recognises what Go says of a tree, and Redis of a script, that does not
// compile.
func unbuilt(out string) bool {
	return strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]") ||
		strings.Contains(out, "Error compiling script")
}

var failLine = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// firstFailure names the innermost test of the first failure.
func firstFailure(out string) string {
	all := failLine.FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		return "a test that ended the run"
	}
	name := all[0][1]
	for _, next := range all[1:] {
		if !strings.HasPrefix(next[1], name+"/") {
			break
		}
		name = next[1]
	}
	return name
}
