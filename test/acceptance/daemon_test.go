package acceptance

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/daemontest"
)

// daemon is a program that runs until the test ends.
type daemon = daemontest.Daemon

// launch runs a program in a directory of its own until the test ends.
func (w *world) launch(t *testing.T, dir, name string, args ...string) *daemon {
	t.Helper()
	cmd := exec.Command(program(t, name), args...)
	cmd.Dir = w.own(t, dir)
	return w.start(t, cmd)
}

// start starts a command that runs until the test ends.
func (w *world) start(t *testing.T, cmd *exec.Cmd) *daemon {
	t.Helper()
	cmd.Env = slices.Concat(raceSettings, w.environ, cmd.Env)
	d := daemontest.Start(t, patience, cmd)
	w.daemons = append(w.daemons, d)
	return d
}

// run runs a program to its end and returns what it printed and its exit code.
func run(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, raceSettings
	return daemontest.Run(t, cmd)
}
