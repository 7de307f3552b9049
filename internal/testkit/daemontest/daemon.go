package daemontest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// Daemon is a program that runs until the test ends.
type Daemon struct {
	*exec.Cmd

	// Log is what it prints to stdout and stderr.
	Log *Output
	// Done is closed when the process has ended.
	Done <-chan struct{}
	// Killed says that its exit code means nothing to Finish: SIGKILL has ended it,
	// or the test looks at the code itself.
	Killed bool

	patience time.Duration
}

// Start starts a program, which the test stops with [Stop]. Its environment is
// that of the test and then cmd.Env. What it prints goes to Log, unless cmd says
// where. Patience is how long it may take to say
// something and to end.
func Start(tb testing.TB, patience time.Duration, cmd *exec.Cmd) *Daemon {
	tb.Helper()
	done := make(chan struct{})
	d := &Daemon{Cmd: cmd, Log: &Output{}, Done: done, patience: patience}
	if d.Stdout == nil && d.Stderr == nil {
		d.Stdout, d.Stderr = d.Log, d.Log
	}
	d.Env = slices.Concat(os.Environ(), d.Env)
	if err := d.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() {
		_ = d.Wait() // the exit code says it
		close(done)
	}()
	return d
}

// Stop asks programs to end, waits until they have, and shows what they wrote if
// the test has failed. Each must end in good order.
func Stop(tb testing.TB, all []*Daemon) {
	tb.Helper()
	for _, d := range all {
		_ = d.Process.Signal(syscall.SIGCONT) // those that have ended do not mind
		_ = d.Process.Signal(syscall.SIGTERM)
	}
	for _, d := range all {
		d.Finish(tb)
		if tb.Failed() {
			tb.Logf("%s wrote:\n%s", filepath.Base(d.Dir), d.Log)
		}
	}
}

// Finish waits for a program that was asked to end; its exit code must be 0.
func (d *Daemon) Finish(tb testing.TB) {
	tb.Helper()
	limit := time.NewTimer(d.patience)
	defer limit.Stop()
	select {
	case <-d.Done:
	case <-limit.C:
		tb.Errorf("%v does not stop", d.Args)
		_ = d.Process.Kill()
		<-d.Done
	}
	if code := d.ProcessState.ExitCode(); code != 0 && !d.Killed {
		tb.Errorf("%v ended with %d", d.Args, code)
	}
}

// Ended reports whether the program does not run any more.
func (d *Daemon) Ended() bool {
	select {
	case <-d.Done:
		return true
	default:
		return false
	}
}

// Signal sends the program a signal; it must not have ended.
func (d *Daemon) Signal(tb testing.TB, s os.Signal) {
	tb.Helper()
	d.Killed = d.Killed || s == syscall.SIGKILL
	if err := d.Process.Signal(s); err != nil {
		tb.Fatal(err)
	}
}

// Kill ends the program with SIGKILL and waits until it is gone.
func (d *Daemon) Kill(tb testing.TB) {
	tb.Helper()
	d.Signal(tb, syscall.SIGKILL)
	<-d.Done
}

// Says waits until the program has printed the text.
func (d *Daemon) Says(tb testing.TB, want string) {
	tb.Helper()
	wait.Eventually(tb, d.patience, func() bool { return strings.Contains(d.Log.String(), want) },
		"%v does not say %q", d.Args, want)
}
