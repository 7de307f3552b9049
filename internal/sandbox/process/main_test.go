package process

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
)

// helperVariable makes the test binary act as a worker of its own.
const helperVariable = "PROCESS_TEST_HELPER"

func TestMain(m *testing.M) {
	if role := os.Getenv(helperVariable); role != "" {
		os.Exit(helper(role))
	}
	os.Exit(m.Run())
}

// program installs content as run.sh in a directory of its own.
func program(t *testing.T, content string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, programFile), content, 0o755)
	return dir
}

func write(t *testing.T, name, content string, mode os.FileMode) {
	t.Helper()
	hosttest.WriteProgram(t, name, content, mode)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// forkExec is an Execute; the program writes to output, or to nothing if that is nil.
func (c *Command) forkExec(output *os.File) Execute {
	return func(file string, argv []string) (int, error) {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return 0, err
		}
		defer func() { _ = null.Close() }()
		if output == nil {
			output = null
		}
		files := []uintptr{null.Fd(), output.Fd(), output.Fd()}
		return syscall.ForkExec(file, argv, &syscall.ProcAttr{Dir: c.Dir, Env: c.Env, Files: files})
	}
}

// run starts c, waits for its end and returns what it wrote.
func run(t *testing.T, c Command) string {
	t.Helper()
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	must(t, err)
	defer func() { _ = output.Close() }()
	pid, err := c.Start(c.forkExec(output))
	must(t, err)
	status := await(t, pid)
	text, err := os.ReadFile(output.Name())
	must(t, err)
	if status != 0 {
		t.Fatalf("it ended with status %#x and wrote %q", status, text)
	}
	return string(text)
}

func await(t *testing.T, pid int) syscall.WaitStatus {
	t.Helper()
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			must(t, err)
			return status
		}
	}
}

// startFails starts c, which must fail, and returns the error.
func startFails(t *testing.T, c Command, execute Execute) error {
	t.Helper()
	pid, err := c.Start(execute)
	if err == nil {
		t.Fatalf("it was started and ended with status %#x", await(t, pid))
	}
	if pid != 0 {
		t.Errorf("process id %d beside the error %v", pid, err)
	}
	return err
}

// expectReason fails unless err is a StartError of this reason.
func expectReason(t *testing.T, err error, want Reason) *StartError {
	t.Helper()
	var e *StartError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a StartError", err)
	}
	if e.Reason != want {
		t.Errorf("reason %q, want %q (%v)", e.Reason, want, err)
	}
	return e
}
