package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

// nobody is an ordinary user.
const nobody = 65534

// reachable is a namespace that any user of this host reaches, by TCP.
func reachable(t *testing.T, srv *redistest.Server) *storetest.Space {
	t.Helper()
	sp := storetest.On(t, srv)
	host, port, _ := strings.Cut(srv.Addr(), ":")
	sp.Where.Host = host
	if _, err := fmt.Sscan(port, &sp.Where.Port); err != nil {
		t.Fatal(err)
	}
	return sp
}

// asUser makes a command that of an ordinary user, who owns the world then. Where
// the tests have no rights, theirs is one.
func (w *world) asUser(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	attributes(cmd).Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	err := filepath.WalkDir(w.dir, func(name string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(name, nobody, nobody)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func needRoot(t *testing.T, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to " + why)
	}
}

func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}

var delegated atomic.Int64 // counts the control groups of this process

// group is a control group that belongs to a user. Make it before the world, so
// that it is removed after the world's programs have ended.
type group struct {
	dir   string
	inner *os.File // where a worker starts that is to use it
}

// delegate makes a control group for a user.
func delegate(t *testing.T, uid int) *group {
	t.Helper()
	needRoot(t, "make a control group")
	dir := filepath.Join(unified(t), fmt.Sprintf("tdf-acceptance-%d-%d", os.Getpid(), delegated.Add(1)))
	inner := filepath.Join(dir, "worker")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeGroup(t, dir) })
	for _, name := range []string{dir, inner, dir + "/cgroup.procs", inner + "/cgroup.procs", dir + "/cgroup.subtree_control"} {
		if err := os.Chown(name, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Open(inner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return &group{dir, file}
}

// hold makes a command start inside the group.
func (g *group) hold(cmd *exec.Cmd) {
	attributes(cmd).UseCgroupFD, attributes(cmd).CgroupFD = true, int(g.inner.Fd())
}

// unified is where version 2 of control groups is mounted.
func unified(t *testing.T) string {
	t.Helper()
	for _, dir := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		var stat unix.Statfs_t
		if unix.Statfs(dir, &stat) == nil && stat.Type == unix.CGROUP2_SUPER_MAGIC {
			return dir
		}
	}
	t.Skip("needs control groups of version 2")
	return ""
}

// removeGroup removes a control group with those in it, which a worker that was
// killed has left. All of their processes must be gone.
func removeGroup(t *testing.T, dir string) {
	t.Helper()
	var groups []string
	_ = filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			groups = append(groups, name)
		}
		return nil // a group may vanish while it is looked at
	})
	for _, group := range slices.Backward(groups) {
		if err := unix.Rmdir(group); err != nil {
			t.Errorf("control group %s: %v", group, err)
		}
	}
}

// shimsOf are the process ids of a worker's shims.
func shimsOf(t *testing.T, worker *daemon) []int {
	t.Helper()
	var pids []int
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", worker.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range threads {
		text, _ := os.ReadFile(name) // a thread may end
		for word := range strings.FieldsSeq(string(text)) {
			cmdline, _ := os.ReadFile("/proc/" + word + "/cmdline")
			var pid int
			if _, err := fmt.Sscan(word, &pid); err == nil && strings.HasPrefix(string(cmdline), "tdf-shim\x00") {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// left are the processes of one program of this namespace.
func (w *world) left(program string) []int {
	mine := w.running()
	return slices.DeleteFunc(hosttest.ProcessesWith("TDF_PROGRAM="+program), func(pid int) bool {
		return !slices.Contains(mine, pid)
	})
}
