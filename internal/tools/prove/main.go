// The command prove shows that the suite would have found the bugs that other
// queues had, and the original of this one. It brings them back one at a time, in
// a copy of the tree, runs the smallest test that must notice, and prints a table.
// It ends with an error if a bug survives. The bugs are the patches in
// test/prove/patches.
//
//	go run ./internal/tools/prove [-bug NAME]
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/tools/trial"
)

func main() {
	name := flag.String("bug", "", "bring back this one only")
	flag.Parse()
	if err := run(*name); err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
		os.Exit(1)
	}
}

func run(name string) error {
	chosen, err := choose(name)
	if err != nil {
		return err
	}
	t := trial.Table{Columns: []string{"bug", "what it is", "seen at"}, Sound: suites(chosen)}
	for i := range chosen {
		t.Faults = append(t.Faults, chosen[i].fault())
	}
	return t.Print(os.Stdout, ".")
}

func choose(name string) ([]bug, error) {
	all, err := bugs(".")
	if err != nil || name == "" {
		return all, err
	}
	chosen := slices.DeleteFunc(slices.Clone(all), func(b bug) bool { return b.name != name })
	if len(chosen) == 0 {
		var names []string
		for i := range all {
			names = append(names, all[i].name)
		}
		return nil, fmt.Errorf("there is no bug %q, there are: %s", name, strings.Join(names, ", "))
	}
	return chosen, nil
}

// suites are the tests of all bugs. Those of a package are run together, patterns
// of subtests alone.
func suites(chosen []bug) []trial.Suite {
	whole := map[string][]string{}
	var all []trial.Suite
	for i := range chosen {
		s := chosen[i].suite
		packages := strings.Join(s.Packages, " ")
		switch {
		case !strings.Contains(s.Run, "/"):
			whole[packages] = append(whole[packages], s.Run)
		case !slices.ContainsFunc(all, func(o trial.Suite) bool { return o.String() == s.String() }):
			all = append(all, s)
		}
	}
	for packages, runs := range whole {
		all = append(all, trial.Suite{Packages: strings.Fields(packages), Run: strings.Join(runs, "|")})
	}
	return all
}

// patches is where the bugs lie, from the root of the tree.
const patches = "test/prove/patches"

// A bug is a fault that another queue had, the original, or an older release: a
// patch that brings it back, and the tests that must notice. The file begins with
//
//	What: one sentence
//	Seen: whose bug it is, and where that is written
//	Test: ./package -run pattern
//
// and the patch follows.
type bug struct {
	name, what, seen string
	suite            trial.Suite
	// patch is the whole file: git skips what stands before the first diff.
	patch string
}

// bugs reads all patches, in the order of their names.
func bugs(tree string) ([]bug, error) {
	files, err := filepath.Glob(filepath.Join(tree, patches, "*.patch"))
	if err != nil {
		return nil, fmt.Errorf("list the patches: %w", err)
	}
	slices.Sort(files)
	all := make([]bug, len(files))
	for i, file := range files {
		if all[i], err = read(file); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return all, nil
}

func read(file string) (bug, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return bug{}, err
	}
	b := bug{name: strings.TrimSuffix(filepath.Base(file), ".patch"), patch: string(text)}
	lines := bufio.NewScanner(strings.NewReader(b.patch))
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "diff ") {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		switch key {
		case "What":
			b.what = value
		case "Seen":
			b.seen = value
		case "Test":
			b.suite = suite(value)
		}
	}
	if b.what == "" || b.seen == "" || len(b.suite.Packages) == 0 || b.suite.Run == "" {
		return bug{}, fmt.Errorf("it wants lines What, Seen and Test (./package -run pattern) before the patch")
	}
	return b, nil
}

func suite(text string) trial.Suite {
	packages, run, _ := strings.Cut(text, " -run ")
	return trial.Suite{Packages: strings.Fields(packages), Run: strings.Trim(run, "' ")}
}

// files are those that the patch changes.
func (b *bug) files() []string {
	var names []string
	for line := range strings.Lines(b.patch) {
		if name, ok := strings.CutPrefix(line, "+++ b/"); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

// apply brings the bug into a tree, or takes it back. One line of context will do,
// so that a change near by does not put a patch out of date.
func (b *bug) apply(tree string, options ...string) error {
	cmd := exec.Command("git", append([]string{"apply", "-C1"}, options...)...) //nolint:noctx // short
	cmd.Dir, cmd.Stdin = tree, strings.NewReader(b.patch)
	// A copy may lie below a repository, whose paths are none of its own.
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(tree))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the patch does not apply, bring it up to date: %w\n%s", err, out)
	}
	return nil
}

// fault is the bug as it is tried.
func (b *bug) fault() trial.Fault {
	return trial.Fault{
		Name: b.name, Cells: []string{b.name, b.what, b.seen}, Suite: b.suite,
		Plant: func(tree string) (func() error, error) {
			if err := b.apply(tree); err != nil {
				return nil, err
			}
			return func() error { return b.apply(tree, "--reverse") }, nil
		},
	}
}
