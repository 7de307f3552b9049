// Package daemontest builds the three programs and runs them as their users do:
// as processes of their own, which are stopped at the end of a test and must end
// in good order.
//
// The package is imported from _test.go files only.
package daemontest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// Programs are tdf-server, tdf-worker and tdf-manager, built on first use for all
// tests of a package, or found in the directory that TDF_TEST_PROGRAMS names. They
// find data races if the tests do, which also spares compiling everything twice. Call
// [Programs.Remove] at the end of its TestMain.
type Programs struct {
	once sync.Once
	dir  string
	err  error
}

// Path returns the path of one of the programs. Every user may run it.
func (p *Programs) Path(tb testing.TB, name string) string {
	tb.Helper()
	if dir := os.Getenv("TDF_TEST_PROGRAMS"); dir != "" {
		return filepath.Join(dir, name)
	}
	p.once.Do(func() { p.dir, p.err = build() })
	if p.err != nil {
		tb.Fatal(p.err)
	}
	return filepath.Join(p.dir, name)
}

// Remove removes what was built.
func (p *Programs) Remove() {
	if p.dir != "" {
		_ = os.RemoveAll(p.dir)
	}
}

func build() (string, error) {
	dir, err := os.MkdirTemp("", "tdf-daemontest-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // other users run the programs too
		return dir, err
	}
	args := slices.Concat([]string{"build", "-o", dir + string(filepath.Separator)}, raceFlags)
	for _, name := range []string{"tdf-server", "tdf-worker", "tdf-manager"} {
		args = append(args, "github.com/tdf-go/tdf/cmd/"+name)
	}
	cmd := exec.Command("go", args...) //nolint:noctx // the first test must not take it from the others
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, errors.Join(fmt.Errorf("build: %w\n%s", err, out), os.RemoveAll(dir))
	}
	return dir, nil
}
