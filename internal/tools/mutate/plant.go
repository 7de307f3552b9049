package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// defect is one change of one line, and the packages whose tests must notice.
type defect struct {
	what     string
	file     string
	old, new string
	packages []string
}

// texts are the file of the defect as it is in the tree, and with the defect.
func (d *defect) texts(tree string) (sound, broken []byte, err error) {
	sound, err = os.ReadFile(filepath.Join(tree, d.file))
	if err != nil {
		return nil, nil, fmt.Errorf("read: %w", err)
	}
	if n := bytes.Count(sound, []byte(d.old)); n != 1 {
		return nil, nil, fmt.Errorf("%q stands %d times in %s, want once: bring the list of defects up to date", d.old, n, d.file)
	}
	return sound, bytes.Replace(sound, []byte(d.old), []byte(d.new), 1), nil
}

// try plants the defect, runs the tests and takes it back. It returns the name
// of the first test that failed, empty if none did.
func (d *defect) try(tree string) (string, error) {
	sound, broken, err := d.texts(tree)
	if err != nil {
		return "", err
	}
	name := filepath.Join(tree, d.file)
	if err := os.WriteFile(name, broken, 0o600); err != nil {
		return "", fmt.Errorf("plant: %w", err)
	}
	out, ok := test(tree, d.packages)
	if err := os.WriteFile(name, sound, 0o600); err != nil {
		return "", fmt.Errorf("take back: %w", err)
	}
	switch {
	case ok:
		return "", nil
	case strings.Contains(out, "[build failed]"):
		return "", fmt.Errorf("with %q it does not compile: that is no defect to test for", d.new)
	default:
		return firstFailure(out), nil
	}
}

func test(tree string, packages []string) (string, bool) {
	args := append([]string{"test", "-failfast", "-timeout=5m"}, packages...)
	cmd := exec.Command("go", args...) //nolint:noctx // the tests have a timeout
	cmd.Dir = tree
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

var failLine = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// firstFailure names the innermost test of the first failure; a defect that
// hangs or panics is named so.
func firstFailure(out string) string {
	all := failLine.FindAllStringSubmatch(out, -1)
	switch {
	case len(all) > 1 && strings.HasPrefix(all[1][1], all[0][1]+"/"):
		return all[1][1]
	case len(all) > 0:
		return all[0][1]
	default:
		return "a test that ended the run"
	}
}

// copyTree copies what git knows or would take into a directory of its own, so
// that an interrupted run leaves nothing behind in the checkout.
func copyTree(from string) (string, error) {
	to, err := os.MkdirTemp("", "tdf-mutate-")
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
		if err := copyFile(from, to, strings.TrimSpace(name)); err != nil {
			return "", err
		}
	}
	return to, nil
}

func copyFile(from, to, name string) error {
	info, err := os.Stat(filepath.Join(from, name))
	if os.IsNotExist(err) {
		return nil // deleted, not committed yet
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
