// Package trial runs tests on copies of the source tree that have been broken on
// purpose: what make mutate and make prove share.
package trial

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Table is faults that are tried one at a time, each a row.
type Table struct {
	// Columns are the names of the faults' cells.
	Columns []string
	Faults  []Fault
	// Sound are the tests of all faults. They are run without any: a test that fails
	// anyway proves nothing.
	Sound []Suite
}

// Print tries all faults in a copy of the tree, and prints the table. It returns an
// error if a fault survives.
func (t *Table) Print(out io.Writer, tree string) error {
	broken, err := Copy(tree)
	if err != nil {
		return fmt.Errorf("copy the tree: %w", err)
	}
	defer func() { _ = os.RemoveAll(broken) }()
	if err := t.checkSound(out, broken); err != nil {
		return err
	}
	line := strings.Repeat("|---", len(t.Columns)+2) + "|"
	fmt.Fprintf(out, "| %s | found by | seconds |\n%s\n", strings.Join(t.Columns, " | "), line)
	var survived []string
	for i := range t.Faults {
		f := &t.Faults[i]
		found, err := f.print(out, broken)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if !found {
			survived = append(survived, f.Name)
		}
	}
	if len(survived) > 0 {
		return fmt.Errorf("the tests find nothing wrong with: %s", strings.Join(survived, ", "))
	}
	return nil
}

func (t *Table) checkSound(out io.Writer, tree string) error {
	began := time.Now()
	for _, s := range t.Sound {
		if r := s.Try(tree); !r.Green {
			return fmt.Errorf("%s fails without any fault:\n%s", s, r.Output)
		}
	}
	fmt.Fprintf(out, "The tests of all %d pass without a fault (%.0f s).\n\n", len(t.Faults), time.Since(began).Seconds())
	return nil
}

// print tries a fault, prints its row and reports whether it was found.
func (f *Fault) print(out io.Writer, tree string) (bool, error) {
	began := time.Now()
	test, err := f.Try(tree)
	if err != nil {
		return false, err
	}
	by := "**nothing: it survived**"
	if test != "" {
		by = fmt.Sprintf("`%s` in %s", test, strings.Join(f.Suite.Packages, " "))
	}
	fmt.Fprintf(out, "| %s | %s | %.0f |\n", strings.Join(f.Cells, " | "), by, time.Since(began).Seconds())
	return test != "", nil
}

// Fault is a change of the tree that must turn a test red.
type Fault struct {
	// Name is what errors call it.
	Name string
	// Cells are what the table says of it.
	Cells []string
	// Suite are the tests that must notice.
	Suite Suite
	// Plant brings it into a tree, and returns what takes it back.
	Plant func(tree string) (takeBack func() error, err error)
}

// Try plants the fault, runs its tests and takes it back. It returns the name of
// the first test that failed, empty if none did. It is an error if with the fault
// the tree does not compile.
func (f *Fault) Try(tree string) (string, error) {
	takeBack, err := f.Plant(tree)
	if err != nil {
		return "", err
	}
	r := f.Suite.Try(tree)
	if err := takeBack(); err != nil {
		return "", fmt.Errorf("take back: %w", err)
	}
	if r.Unbuilt {
		return "", fmt.Errorf("with it the tree does not compile, which shows nothing:\n%s", r.Output)
	}
	return r.Found, nil
}

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
	if err == nil {
		return Result{Green: true, Output: out}
	}
	return Result{Unbuilt: unbuilt.MatchString(out), Found: firstFailure(out), Output: out}
}

// unbuilt is what Go says of a tree, and Redis of a script, that does not compile.
var unbuilt = regexp.MustCompile(`\[build failed\]|\[setup failed\]|Error compiling script`)

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

// Copy copies what git knows or would take into a directory of its own, so that an
// interrupted run leaves nothing behind in the checkout. The caller removes it.
func Copy(from string) (string, error) {
	to, err := os.MkdirTemp("", "tdf-trial-")
	if err != nil {
		return "", fmt.Errorf("copy: %w", err)
	}
	list := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard") //nolint:noctx // short
	list.Dir = from
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("list the files with git: %w", err)
	}
	for name := range strings.Lines(string(out)) {
		if err := CopyFile(from, to, strings.TrimSpace(name)); err != nil {
			return "", err
		}
	}
	return to, nil
}

// CopyFile copies one file, named as in the tree, with the directories above it. A
// file that is not there, deleted but not committed yet, is left out.
func CopyFile(from, to, name string) error {
	info, err := os.Stat(filepath.Join(from, name))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	data, err := os.ReadFile(filepath.Join(from, name))
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	target := filepath.Join(to, name)
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	if err := os.WriteFile(target, data, info.Mode().Perm()); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	return nil
}
