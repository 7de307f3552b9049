package acceptance

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/wait"
)

// text gathers what a program prints.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *text) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *text) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// daemon is a program that runs until the test ends.
type daemon struct {
	*exec.Cmd
	log  *text
	done chan struct{} // closed when the process has ended
	// killed says that the test has ended it by a signal.
	killed bool
}

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
	d := &daemon{Cmd: cmd, log: &text{}, done: make(chan struct{})}
	d.Stdout, d.Stderr = d.log, d.log
	d.Env = slices.Concat(os.Environ(), raceSettings, d.Env)
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = d.Wait() // the exit code says it
		close(d.done)
	}()
	w.daemons = append(w.daemons, d)
	return d
}

// stopAll asks all programs to end, waits until they have, and shows what they
// wrote if the test has failed. Each must end in good order.
func (w *world) stopAll(t *testing.T) {
	t.Helper()
	for _, d := range w.daemons {
		_ = d.Process.Signal(syscall.SIGCONT) // those that have ended do not mind
		_ = d.Process.Signal(syscall.SIGTERM)
	}
	for _, d := range w.daemons {
		d.finish(t)
		if t.Failed() {
			t.Logf("%s wrote:\n%s", filepath.Base(d.Dir), d.log)
		}
	}
}

// finish waits for a program that was asked to end; its exit code must be 0.
func (d *daemon) finish(t *testing.T) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-d.done:
	case <-limit.C:
		t.Errorf("%v does not stop", d.Args)
		_ = d.Process.Kill()
		<-d.done
	}
	if code := d.ProcessState.ExitCode(); code != 0 && !d.killed {
		t.Errorf("%v ended with %d", d.Args, code)
	}
}

// ended reports whether the program does not run any more.
func (d *daemon) ended() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

func (d *daemon) signal(t *testing.T, s os.Signal) {
	t.Helper()
	d.killed = d.killed || s == syscall.SIGKILL
	if err := d.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// says waits until the program has logged the text.
func (d *daemon) says(t *testing.T, want string) {
	t.Helper()
	wait.Eventually(t, patience, func() bool { return strings.Contains(d.log.String(), want) },
		"%v does not say %q", d.Args, want)
}

// run runs a program to its end and returns what it printed and its exit code.
func run(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	var out, problems text
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &problems
	cmd.Env = append(os.Environ(), raceSettings...)
	_ = cmd.Run() // the exit code says it
	if cmd.ProcessState == nil {
		t.Fatalf("%v cannot be run", args)
	}
	return out.String(), problems.String(), cmd.ProcessState.ExitCode()
}
