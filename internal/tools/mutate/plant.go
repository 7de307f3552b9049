package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tdf-go/tdf/internal/tools/trial"
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
	r := trial.Suite{Packages: d.packages}.Try(tree)
	if err := os.WriteFile(name, sound, 0o600); err != nil {
		return "", fmt.Errorf("take back: %w", err)
	}
	if r.Unbuilt {
		return "", fmt.Errorf("with %q it does not compile: that is no defect to test for", d.new)
	}
	return r.Found, nil
}
