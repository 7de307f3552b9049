package daemontest

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

// Run runs a program to its end and returns what it printed and its exit code, -1
// after a signal. Its environment is that of the test and then cmd.Env.
func Run(tb testing.TB, cmd *exec.Cmd) (stdout, stderr string, code int) {
	tb.Helper()
	var out, problems Output
	cmd.Stdout, cmd.Stderr = &out, &problems
	cmd.Env = slices.Concat(os.Environ(), cmd.Env)
	_ = cmd.Run() // the exit code says it
	if cmd.ProcessState == nil {
		tb.Fatalf("%v cannot be run", cmd.Args)
	}
	return out.String(), problems.String(), cmd.ProcessState.ExitCode()
}
