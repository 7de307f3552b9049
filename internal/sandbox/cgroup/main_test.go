package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/internal/testkit/wait"
)

const (
	patienceOfTests = 10 * time.Second
	// helperVariable makes the test binary act as a worker of an ordinary user.
	helperVariable = "CGROUP_TEST_HELPER"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperVariable); dir != "" {
		helper(dir)
	}
	goleak.VerifyTestMain(m)
}

// nameFor is a worker's name that no other test has.
func nameFor(t testing.TB) string { return fmt.Sprintf("test %s %d", t.Name(), os.Getpid()) }

var marks atomic.Int64

// anybody is a Sweep of all that is not the tree's own.
func anybody(string) bool { return true }

// openTree opens a tree that can kill and limit, and removes it in the end.
func openTree(t testing.TB, l Limits) *Tree {
	t.Helper()
	tree, err := Open("", nameFor(t), fmt.Sprint(marks.Add(1)), l)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{tree.CanKill(), tree.CanLimit()} {
		if err != nil {
			t.Skipf("needs writable cgroups: %v", err)
		}
	}
	t.Cleanup(func() { cleanUp(t, tree) })
	return tree
}

// cleanUp leaves nothing of the tree, whatever the test has done to it.
func cleanUp(t testing.TB, tree *Tree) {
	t.Helper()
	if err := tree.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := tree.Sweep(anybody); err != nil {
		t.Errorf("Sweep: %v", err)
	}
	for _, dir := range tree.places {
		if err := removeGroup(dir); err != nil {
			t.Errorf("clean up: %v", err)
		}
	}
}

func slot(t testing.TB, tree *Tree, n int) *Group {
	t.Helper()
	g, err := tree.Slot(n)
	mustNot(t, err)
	return g
}

// command is a shell script in the group, by FD and JoinPaths.
func command(g *Group, script string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", "-c", `for f in $JOIN; do echo 0 >"$f" || exit 99; done; exec /bin/sh -c "$SCRIPT"`)
	cmd.Env = append(os.Environ(), "SCRIPT="+script, "JOIN="+strings.Join(g.JoinPaths(), " "))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if g.FD() >= 0 {
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, g.FD()
	}
	return cmd
}

// start runs the script until it is killed, and returns once dir has at least n processes.
func start(t testing.TB, g *Group, script, dir string, n int) {
	t.Helper()
	cmd := command(g, script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // runs before the tree's clean-up, so it must be dead
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	wait.Eventually(t, patienceOfTests, func() bool { return len(members(dir)) >= n }, "%d processes in %s", n, dir)
}

// pids.max of version 1 or 2 in the group of a slot.
func pidsDir(g *Group) string {
	for _, dir := range g.dirs() {
		if _, err := os.Stat(filepath.Join(dir, "pids.max")); err == nil {
			return dir
		}
	}
	return ""
}

func mustNot(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expectGone(t testing.TB, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: still there, %v", dir, err)
		}
	}
}
