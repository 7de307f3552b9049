package shim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

const nobody = 65534

// All the tests but the long ones again as an ordinary user, who gets PID namespaces by user
// namespaces only and cgroups by delegation. What needs root says so and skips.
func TestLongAsOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	dir := publicDir(t)
	cgroup, fd := delegate(t)
	cmd := exec.CommandContext(context.Background(), copySelf(t, dir), "-test.v", "-test.short", "-test.skip=^TestLong", "-test.run="+os.Getenv("SHIM_TEST_RUN"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir, cgroupVariable+"="+cgroup)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential:  &syscall.Credential{Uid: nobody, Gid: nobody},
		UseCgroupFD: true, CgroupFD: fd,
	}
	text, err := cmd.CombinedOutput()
	report := string(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, report)
	}
	for line := range strings.Lines(report) {
		if strings.Contains(line, "--- SKIP") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if n := strings.Count(report, "--- PASS"); n < 10 {
		t.Errorf("only %d tests ran:\n%s", n, report)
	}
}

// publicDir is a temporary directory for everybody.
func publicDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "shim-test-") //nolint:usetesting // others cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o1777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// copySelf puts the test binary where others can execute it.
func copySelf(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "shim.test")
	hosttest.WriteProgram(t, name, string(self), 0o755)
	return name
}

// delegate makes a cgroup that belongs to nobody, and one in it for the worker.
func delegate(t *testing.T) (dir string, worker int) {
	t.Helper()
	dir = filepath.Join(unified(t), fmt.Sprintf("shim-test-%d", os.Getpid()))
	inner := filepath.Join(dir, "worker")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		wait.Eventually(t, within, func() bool { // a shim whose worker was killed may end later than the tests
			_ = os.Remove(inner)
			err := os.Remove(dir)
			return err == nil || errors.Is(err, os.ErrNotExist)
		}, "the cgroup is empty")
	})
	for _, name := range []string{dir, inner, dir + "/cgroup.procs", inner + "/cgroup.procs", dir + "/cgroup.subtree_control"} {
		if err := os.Chown(name, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Open(inner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return dir, int(file.Fd())
}

// unified is where version 2 of cgroups is mounted.
func unified(t *testing.T) string {
	t.Helper()
	for _, dir := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		var stat unix.Statfs_t
		if unix.Statfs(dir, &stat) == nil && stat.Type == unix.CGROUP2_SUPER_MAGIC {
			return dir
		}
	}
	t.Fatal("cgroups of version 2 are not mounted")
	return ""
}
