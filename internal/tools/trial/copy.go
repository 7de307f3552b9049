package trial

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

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
