package remove

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// host is a directory of the host, with a file that must outlive the test, beside a
// tree to remove.
type host struct{ dir, canary, tree string }

func newHost(t *testing.T) host {
	t.Helper()
	h := host{dir: t.TempDir()}
	h.canary, h.tree = filepath.Join(h.dir, "host", "canary"), filepath.Join(h.dir, "tree")
	for _, dir := range []string{filepath.Dir(h.canary), filepath.Join(h.tree, "a", "b")} {
		noErr(t, os.MkdirAll(dir, 0o755))
	}
	for _, file := range []string{h.canary, filepath.Join(h.tree, "file"), filepath.Join(h.tree, "a", "b", "file")} {
		noErr(t, os.WriteFile(file, nil, 0o644))
	}
	return h
}

// mounting gives the test's goroutine a mount namespace of its own.
func (h host) mounting(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	if err != nil {
		t.Skipf("needs root to mount something: %v", err)
	}
	t.Cleanup(func() { // before the directory is removed
		var m Mounts
		for left := m.look(true).within(h.dir); len(left) > 0; left = m.look(true).within(h.dir) {
			if err := unix.Unmount(left[len(left)-1].point, unix.MNT_DETACH); err != nil {
				t.Fatal(err)
			}
		}
		m.Close()
	})
}

func (h host) bind(t *testing.T, from, to string) {
	t.Helper()
	noErr(t, unix.Mount(filepath.Join(h.dir, from), filepath.Join(h.dir, to), "", unix.MS_BIND, ""))
}

// check fails the test if the canary is gone, or the tree is there or not against
// what is wanted.
func (h host) check(t *testing.T, tree bool) {
	t.Helper()
	if _, err := os.Lstat(h.canary); err != nil {
		t.Fatalf("the host's file is gone: %v", err)
	}
	if _, err := os.Lstat(h.tree); (err == nil) != tree {
		t.Errorf("the tree: %v; want it there: %v", err, tree)
	}
}

func noErr(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mountings are what may be mounted in a tree.
var mountings = map[string]func(t *testing.T, h host){
	"directory": func(t *testing.T, h host) { h.bind(t, "host", "tree/a") },
	"top":       func(t *testing.T, h host) { h.bind(t, "host", "tree") },
	"itself":    func(t *testing.T, h host) { h.bind(t, "tree/a", "tree/a") },
	"file":      func(t *testing.T, h host) { h.bind(t, "host/canary", "tree/a/b/file") },
	"tmpfs":     func(t *testing.T, h host) { noErr(t, unix.Mount("tmpfs", h.tree+"/a", "tmpfs", 0, "")) },
	"stacked": func(t *testing.T, h host) {
		h.bind(t, "host", "tree/a/b")
		noErr(t, unix.Mount("tmpfs", h.tree+"/a/b", "tmpfs", 0, ""))
		h.bind(t, "host", "tree/a/b")
	},
	"covered": func(t *testing.T, h host) {
		h.bind(t, "host", "tree/a/b")
		h.bind(t, "host", "tree/a")
	},
	"in a mount": func(t *testing.T, h host) {
		noErr(t, unix.Mount("tmpfs", h.tree+"/a", "tmpfs", 0, ""))
		noErr(t, os.Mkdir(h.tree+"/a/c d", 0o755))
		h.bind(t, "host", "tree/a/c d")
	},
}

// Whatever the system knows, nothing is removed of what is mounted in a tree.
func TestMountIsNotCrossed(t *testing.T) {
	t.Parallel()
	if fd, err := openBeneath(unix.AT_FDCWD, ".", unix.O_PATH); err != nil {
		t.Logf("without openat2: %v", err)
	} else {
		_ = unix.Close(fd)
	}
	for name, ways := range map[string][]way{
		"openat2": {openBeneath}, "statx": {compared(statMount)}, "fdinfo": {compared(infoMount)}, "nothing": nil,
	} {
		for what, mount := range mountings {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				h := newHost(t)
				h.mounting(t)
				mount(t, h)
				dir, err := os.Open(h.dir)
				noErr(t, err)
				defer func() { _ = dir.Close() }()
				w := walk{ways: ways}
				err = w.remove(int(dir.Fd()), "tree", h.tree, 0)
				if mounted := new(MountedError); !errors.As(err, &mounted) || !strings.HasPrefix(mounted.Path, h.tree) {
					t.Errorf("%v, want a MountedError", err)
				}
				h.check(t, true)
			})
		}
	}
}

// What was mounted meanwhile is unmounted, and the tree can go. A mount elsewhere is a change once, also for who has looked at the tree
// because of it.
func TestFree(t *testing.T) {
	t.Parallel()
	for what, mount := range mountings {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.mounting(t)
			var m Mounts
			defer m.Close()
			before := m.Now()
			if m.Now() != before {
				t.Error("it was read again although nothing has changed")
			}
			elsewhere := filepath.Join(h.dir, "elsewhere")
			noErr(t, os.Mkdir(elsewhere, 0o755))
			noErr(t, unix.Mount("tmpfs", elsewhere, "tmpfs", 0, ""))
			now := m.Now()
			noErr(t, m.Free(h.tree, before))
			if m.Now() != now {
				t.Error("each round looks for mounts from then on")
			}
			mount(t, h)
			if now == before || m.Now() == now {
				t.Error("a mount was not noticed")
			}
			noErr(t, m.Free(h.tree, before))
			noErr(t, Tree(h.tree))
			h.check(t, false)
		})
	}
}

// What was mounted before stays, wherever it is now, and so does the tree.
func TestFormerMountStays(t *testing.T) {
	t.Parallel()
	for what, move := range map[string]bool{"there": false, "moved there": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.mounting(t)
			elsewhere := filepath.Join(h.dir, "elsewhere")
			noErr(t, os.Mkdir(elsewhere, 0o755))
			place := h.tree + "/a"
			if move {
				place = elsewhere
			}
			noErr(t, unix.Mount("tmpfs", place, "tmpfs", 0, ""))
			file := h.tree + "/a/precious"
			noErr(t, os.WriteFile(filepath.Join(place, "precious"), nil, 0o644))
			var m Mounts
			defer m.Close()
			before := m.Now()
			if move { // into another mount, which is new
				noErr(t, unix.Mount("tmpfs", h.tree, "tmpfs", 0, ""))
				noErr(t, os.Mkdir(h.tree+"/a", 0o755))
				noErr(t, unix.Mount(elsewhere, h.tree+"/a", "", unix.MS_MOVE, ""))
			}
			if err := m.Free(h.tree, before); !errors.As(err, new(*MountedError)) {
				t.Errorf("%v, want a MountedError", err)
			}
			if err := Tree(h.tree); !errors.As(err, new(*MountedError)) {
				t.Errorf("%v, want a MountedError", err)
			}
			if _, err := os.Lstat(file); err != nil {
				t.Error(err)
			}
		})
	}
}

// What the host has mounted in the directory that is shown in the tree stays mounted.
func TestFreeIsNotPropagated(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mounting(t)
	shown, inner := filepath.Join(h.dir, "host"), filepath.Join(h.dir, "host", "inner")
	noErr(t, unix.Mount("tmpfs", shown, "tmpfs", 0, ""))
	noErr(t, unix.Mount("", shown, "", unix.MS_SHARED, ""))
	noErr(t, os.WriteFile(h.canary, nil, 0o644))
	noErr(t, os.Mkdir(inner, 0o755))
	noErr(t, unix.Mount("tmpfs", inner, "tmpfs", 0, ""))
	var m Mounts
	defer m.Close()
	before := m.Now()
	noErr(t, unix.Mount(shown, h.tree+"/a", "", unix.MS_BIND|unix.MS_REC, ""))
	noErr(t, m.Free(h.tree, before))
	noErr(t, Tree(h.tree))
	h.check(t, false)
	if left := m.Now().within(inner); len(left) != 1 {
		t.Errorf("at %s is mounted %v", inner, left)
	}
}

// A link in the place of a mount's directory leads neither the unmounting nor the
// removal out of the tree.
func TestLinkIsNotFollowed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.mounting(t)
	other := filepath.Join(h.dir, "host", "b")
	noErr(t, os.Mkdir(other, 0o755))
	noErr(t, unix.Mount("tmpfs", other, "tmpfs", 0, ""))
	var m Mounts
	defer m.Close()
	before := m.Now()
	h.bind(t, "host", "tree/a/b")
	there := m.Now().within(h.tree)
	noErr(t, os.Rename(h.tree+"/a", h.tree+"/moved"))
	noErr(t, os.Symlink(filepath.Join(h.dir, "host"), h.tree+"/a"))
	parent, err := os.Open(h.dir)
	noErr(t, err)
	defer func() { _ = parent.Close() }()
	// As if it was read before the directory was swapped.
	if err := unmount(parent, h.dir, there); !errors.As(err, new(*MountedError)) {
		t.Errorf("%v, want a MountedError", err)
	}
	if len(m.Now().within(other)) != 1 {
		t.Error("what is mounted behind the link was unmounted")
	}
	noErr(t, m.Free(h.tree, before))
	noErr(t, Tree(h.tree))
	h.check(t, false)
}

// Trees that are deep, wide, without rights or full of oddities go, also for a user.
func TestTree(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	noErr(t, os.Symlink(h.canary, h.tree+"/link"))
	noErr(t, os.Symlink(filepath.Dir(h.canary), h.tree+"/dirlink"))
	noErr(t, os.Link(h.canary, h.tree+"/hard"))
	noErr(t, unix.Mkfifo(h.tree+"/fifo", 0))
	for i := range 2500 {
		noErr(t, os.WriteFile(fmt.Sprintf("%s/a/%d", h.tree, i), nil, 0o600))
	}
	deep, err := os.OpenRoot(h.tree)
	noErr(t, err)
	for range 5 * maxDepth {
		noErr(t, deep.Mkdir("deep", 0o700))
		noErr(t, deep.WriteFile("f", nil, 0o600))
		next, err := deep.OpenRoot("deep")
		noErr(t, err)
		noErr(t, deep.Chmod(".", 0o500))
		noErr(t, deep.Close())
		deep = next
	}
	noErr(t, deep.Close())
	noErr(t, os.Chmod(h.tree+"/a/b", 0))
	noErr(t, os.Chmod(h.tree+"/a", 0o500))
	noErr(t, Tree(h.tree))
	h.check(t, false)
	noErr(t, Tree(h.tree))
	noErr(t, Tree(h.tree+"/no/such"))
	noErr(t, Tree(h.canary))
	if _, err := os.Lstat(h.canary); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// The same as a user, for whom rights count.
func TestTreeByUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("TestTree runs as a user already")
	}
	dir, err := os.MkdirTemp("", "tdf-remove-") //nolint:usetesting // users cannot enter that of a test
	noErr(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	noErr(t, os.Chown(dir, 65534, 65534))
	binary := filepath.Join(dir, "test")
	text, err := os.ReadFile("/proc/self/exe")
	noErr(t, err)
	noErr(t, os.WriteFile(binary, text, 0o755))
	cmd := exec.CommandContext(t.Context(), binary, "-test.run=^TestTree$", "-test.v")
	cmd.Dir, cmd.Env = dir, slices.Concat(os.Environ(), []string{"TMPDIR=" + dir})
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestTree") {
		t.Errorf("%v\n%s", err, out)
	}
}

// What cannot be removed is named, and the rest is gone.
func TestImmutable(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	file, err := os.Open(h.tree + "/a/b/file")
	noErr(t, err)
	const immutable = 0x10
	if err := unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, immutable); err != nil {
		t.Skipf("needs root and files that can be made immutable: %v", err)
	}
	err = Tree(h.tree)
	noErr(t, unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, 0))
	noErr(t, file.Close())
	if !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), h.tree+"/a/b/file") {
		t.Errorf("%v, want the file named", err)
	}
	h.check(t, true)
	if _, err := os.Lstat(h.tree + "/file"); !os.IsNotExist(err) {
		t.Error("the rest is there")
	}
}
