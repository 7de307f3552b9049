package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const nobody = 65534

// helper is a worker that contains a round below dir, or says why it cannot.
func helper(dir string) {
	if err := helped(dir); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

func helped(dir string) error {
	tree, err := Open(dir, "worker", "1", Limits{})
	if err == nil {
		err = tree.CanKill()
	}
	if err != nil {
		return err
	}
	g, err := tree.Slot(0)
	if err != nil {
		return err
	}
	cmd := command(g, "setsid sleep 1000 & setsid sleep 1000 & echo ready; wait")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return errors.Join(err, tree.Close())
	}
	_, err = out.Read(make([]byte, 10))
	err = errors.Join(err, g.Kill())
	_ = cmd.Wait() // killed
	if left := members(g.v2); len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("left: %v", left))
	}
	return errors.Join(err, tree.Close())
}

// asNobody runs helper as an ordinary user, in the cgroup in if that is not "".
func asNobody(t *testing.T, dir, in string) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), helperVariable+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, Pdeathsig: syscall.SIGKILL,
	}
	if in != "" {
		group, err := os.Open(in)
		mustNot(t, err)
		defer func() { _ = group.Close() }()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(group.Fd())
	}
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	return string(out)
}

// delegate makes a cgroup with a leaf "worker", both of which are nobody's.
func delegate(t *testing.T) (dir, worker string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	dir = openTree(t, Limits{}).v2
	worker = filepath.Join(dir, "worker")
	mustNot(t, makeGroup(worker))
	for _, group := range []string{dir, worker} {
		for _, name := range []string{"", "cgroup.procs", "cgroup.subtree_control"} {
			mustNot(t, os.Chown(filepath.Join(group, name), nobody, nobody))
		}
	}
	return dir, worker
}

func TestUserWithDelegatedGroup(t *testing.T) {
	t.Parallel()
	dir, worker := delegate(t)
	if out := asNobody(t, dir, worker); out != "" {
		t.Error(out)
	}
	expectGone(t, filepath.Join(dir, "tdf-worker"))
}

// The directory is the user's, but its worker was started elsewhere: the kernel
// refuses to move processes in.
func TestUserOutsideOfDelegatedGroup(t *testing.T) {
	t.Parallel()
	dir, _ := delegate(t)
	out := asNobody(t, dir, "")
	if !strings.Contains(out, "from the worker's own cgroup") || !strings.Contains(out, "started inside it") {
		t.Errorf("got %q", out)
	}
	expectGone(t, filepath.Join(dir, "tdf-worker"))
}

func TestUserWithoutDelegation(t *testing.T) {
	t.Parallel()
	dir := openTree(t, Limits{}).v2
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	out := asNobody(t, dir, "")
	if !strings.Contains(out, fs.ErrPermission.Error()) && !strings.Contains(out, "permission denied") ||
		!strings.Contains(out, dir) || !strings.Contains(out, "Delegate=yes") {
		t.Errorf("got %q", out)
	}
}
