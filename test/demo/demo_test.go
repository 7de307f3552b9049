//go:build unix

// Package demo_test runs scripts/demo.sh as a newcomer does.
package demo_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	root  = "../.."
	limit = 2 * time.Minute
)

// build puts the three programs into a directory of the test.
func build(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/...")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// demo is the script while it runs, alone in a process group.
type demo struct {
	cmd  *exec.Cmd
	temp string // its TMPDIR
	out  *text
}

func start(t *testing.T, bin string) demo {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit)
	t.Cleanup(cancel)
	d := demo{cmd: exec.CommandContext(ctx, "scripts/demo.sh", bin), temp: t.TempDir(), out: &text{}}
	d.cmd.Dir = root
	d.cmd.Stdout, d.cmd.Stderr = d.out, d.out
	// A stray setting must not lead the demo to somebody's Redis.
	d.cmd.Env = append(os.Environ(), "TMPDIR="+d.temp, "TDF_REDIS_HOST=192.0.2.1", "TDF_TDF_NAMESPACE=precious")
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	d.cmd.Cancel = func() error { return syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL) }
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return d
}

// end waits for the script and returns its exit code; nothing may be left then.
func (d demo) end(t *testing.T) int {
	t.Helper()
	err := d.cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v\n%s", err, d.out)
	}
	if err := syscall.Kill(-d.cmd.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("processes of the demo are left (%v)", err)
	}
	left, err := os.ReadDir(d.temp)
	for _, entry := range left {
		if !strings.HasPrefix(entry.Name(), "go-build") {
			t.Errorf("left in TMPDIR: %v", entry)
		}
	}
	if err != nil {
		t.Error(err)
	}
	return d.cmd.ProcessState.ExitCode()
}

func TestLongDemo(t *testing.T) {
	t.Parallel()
	bin := build(t)
	t.Run("to the end", func(t *testing.T) {
		t.Parallel()
		whole(t, bin)
	})
	// As Ctrl-C does, a signal for all of its processes.
	t.Run("Ctrl-C", func(t *testing.T) {
		t.Parallel()
		interrupted(t, bin, func(pid int) error { return syscall.Kill(-pid, syscall.SIGINT) }, 130)
	})
	// As a supervisor does, a signal for the script.
	t.Run("SIGTERM", func(t *testing.T) {
		t.Parallel()
		interrupted(t, bin, func(pid int) error { return syscall.Kill(pid, syscall.SIGTERM) }, 143)
	})
}

func whole(t *testing.T, bin string) {
	t.Helper()
	d := start(t, bin)
	code := d.end(t)
	out := d.out.String()
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	for _, want := range []string{
		"FINAL RESULT: 5005\n", "result should be: 5005 = (100+10) / 2 * (100-10+1)\n",
		"fetched program 'sum'", "archived (succeeded)",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	ran := 0
	for _, m := range regexp.MustCompile(`worker-[AB] has run (\d+) tasks`).FindAllStringSubmatch(out, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Error(err)
		}
		ran += n
	}
	if ran < 31+2 {
		t.Errorf("the workers ran %d tasks, want more than the first 31\n%s", ran, out)
	}
}

// interrupted stops the demo in the middle.
func interrupted(t *testing.T, bin string, signal func(pid int) error, want int) {
	t.Helper()
	d := start(t, bin)
	wait.Eventually(t, limit, func() bool { return strings.Contains(d.out.String(), "tdf-worker worker-B") },
		"the second worker is not started")
	if err := signal(d.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if code := d.end(t); code != want {
		t.Errorf("exit code %d, want %d\n%s", code, want, d.out)
	}
}

// TestLongBrokenProgram: a daemon that does not start is an error, and is shown.
func TestLongBrokenProgram(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	hosttest.WriteProgram(t, filepath.Join(bin, "tdf-server"), "#!/bin/sh\necho 'out of order' >&2\nexit 7\n", 0o755)
	d := start(t, bin)
	code := d.end(t)
	if out := d.out.String(); code != 1 || !strings.Contains(out, "the server has not started") || !strings.Contains(out, "out of order") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// text is a buffer that may be read while a process writes to it.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.buf.Write(p)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.buf.String()
}
