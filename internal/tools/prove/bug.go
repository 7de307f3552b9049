package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/tools/trial"
)

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
