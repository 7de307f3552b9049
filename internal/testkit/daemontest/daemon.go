// Package daemontest builds the three programs and runs them as their users do:
// as processes of their own, which are stopped at the end of a test and must end
// in good order. [Battery] tests the lifecycle of a daemon inside the test.
//
// The package is imported from _test.go files only.
package daemontest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
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

// Output gathers what a program prints, and may be read meanwhile. The zero value
// is empty.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write adds to the text; it never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, _ := o.text.Write(p) // a buffer takes all
	return n, nil
}

// String is all that was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
