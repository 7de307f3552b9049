package workdir

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/sandbox/remove"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// hold makes a private directory as a round does.
func hold(t *testing.T) *Dir {
	t.Helper()
	path := filepath.Join(t.TempDir(), "private")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	d := &Dir{}
	if err := d.Hold(path, nil); err != nil {
		t.Fatal(err)
	}
	return d
}

// settle waits until one look is enough.
func settle(t *testing.T, d *Dir) {
	t.Helper()
	wait.Eventually(t, time.Minute, func() bool { return d.Clean() && d.Untouched() }, "the directory is settled")
}

// changes are what a program can do to its directory, with what undoes it; clean says
// that nothing is left of it.
var changes = map[string]func(dir string) error{
	"a file":      func(dir string) error { return os.WriteFile(filepath.Join(dir, ".f"), nil, 0o600) },
	"a directory": func(dir string) error { return os.Mkdir(filepath.Join(dir, "d"), 0o700) },
	"a link":      func(dir string) error { return os.Symlink("x", filepath.Join(dir, "l")) },
	"a hard link": func(dir string) error {
		if err := os.WriteFile(dir+".other", nil, 0o600); err != nil {
			return err
		}
		return os.Link(dir+".other", filepath.Join(dir, "h"))
	},
	"a moved file": func(dir string) error {
		if err := os.WriteFile(dir+".other", nil, 0o600); err != nil {
			return err
		}
		return os.Rename(dir+".other", filepath.Join(dir, "m"))
	},
	"a pipe":     func(dir string) error { return unix.Mkfifo(filepath.Join(dir, "p"), 0o600) },
	"other mode": func(dir string) error { return os.Chmod(dir, 0o755) },
	"a link in its place": func(dir string) error {
		if err := os.Rename(dir, dir+"x"); err != nil {
			return err
		}
		return os.Symlink(dir+"x", dir)
	},
	"another in its place": func(dir string) error {
		if err := os.Rename(dir, dir+"x"); err != nil {
			return err
		}
		return os.Mkdir(dir, 0o700)
	},
	"another above it": func(dir string) error {
		above := filepath.Dir(dir)
		if err := os.Rename(above, above+"x"); err != nil {
			return err
		}
		return os.MkdirAll(dir, 0o700)
	},
	"none": os.Remove,
}

// What a program leaves is never taken for nothing, neither in the moment the directory
// was made, when all changes have the same time, nor later, when times tell.
func TestChangedDirectoryIsNotKept(t *testing.T) {
	t.Parallel()
	for what, change := range changes {
		for _, after := range []string{"nothing", "a look", "a while"} {
			d := hold(t)
			switch after {
			case "a look":
				d.Clean()
			case "a while":
				settle(t, d)
			}
			if err := change(d.Path()); err != nil {
				t.Fatal(err)
			}
			if d.Untouched() || d.Clean() {
				t.Errorf("%s, after %s: kept", what, after)
			}
		}
	}
}

// What also went away again is seen too, but is no reason to give the directory up.
func TestUsedAndCleaned(t *testing.T) {
	t.Parallel()
	d := hold(t)
	settle(t, d)
	for what, use := range map[string]func() error{
		"a file": func() error {
			name := filepath.Join(d.Path(), "f")
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				return err
			}
			return os.Remove(name)
		},
		"a mode": func() error {
			if err := os.Chmod(d.Path(), 0o777); err != nil {
				return err
			}
			return os.Chmod(d.Path(), 0o700)
		},
		"times": func() error {
			return os.Chtimes(d.Path(), time.Unix(1, 0), time.Unix(1, 0))
		},
		"old times": func() error {
			return os.Chtimes(d.Path(), time.Unix(0, d.then.Atim.Nano()), time.Unix(0, d.then.Mtim.Nano()))
		},
	} {
		if err := use(); err != nil {
			t.Fatal(err)
		}
		if d.Untouched() {
			t.Errorf("%s: a change was not seen", what)
		}
		if !d.Clean() {
			t.Errorf("%s: not kept", what)
		}
		settle(t, d)
	}
}

// Hidden by the times of a moment ago, as a change is within one step of the clock.
func TestNotSettledAtOnce(t *testing.T) {
	t.Parallel()
	d := hold(t)
	if d.settled || d.Untouched() {
		t.Error("one look is enough at once")
	}
	d.since = time.Now().Add(-time.Hour)
	d.then.Ctim = unix.NsecToTimespec(time.Now().Add(-time.Second).UnixNano() / 1e9 * 1e9)
	if past(&d.then, d.since) {
		t.Error("a file system that keeps seconds has not got past one")
	}
	d.then.Ctim.Sec -= 10
	if !past(&d.then, d.since) {
		t.Error("it never gets past")
	}
	if d.since = time.Now(); past(&d.then, d.since) {
		t.Error("the clock of a file server is believed")
	}
}

// A mount in its place is another directory, also one of the same file system.
func TestMountIsNoKeptDirectory(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"tmpfs", "bind"} {
		d := hold(t)
		settle(t, d)
		kind, from, flags := "tmpfs", "tmpfs", uintptr(0)
		if source == "bind" {
			kind, from, flags = "", t.TempDir(), unix.MS_BIND
		}
		if err := unix.Mount(from, d.Path(), kind, flags, "mode=700"); err != nil {
			t.Skipf("mounting needs root: %v", err)
		}
		if d.Untouched() || d.Clean() {
			t.Errorf("%s: kept", source)
		}
		if err := unix.Unmount(d.Path(), unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}
}

func TestHoldAndForget(t *testing.T) {
	t.Parallel()
	none := &Dir{}
	if none.Clean() || none.Untouched() || none.Shows(nil) || none.Restore(true, remove.In) || none.Path() != "" {
		t.Error("the zero value holds something")
	}
	if err := none.Hold(filepath.Join(t.TempDir(), "no"), nil); err == nil || none.Path() != "" {
		t.Errorf("what is not there is held: %v", err)
	}
	d := hold(t)
	path := d.Path()
	if d.Forget(); d.Clean() || os.Remove(path) != nil {
		t.Error("what is forgotten is kept, or removed")
	}
}

func TestAttributesAreNotInherited(t *testing.T) {
	t.Parallel()
	for _, settled := range []bool{false, true} {
		d := hold(t)
		if settled {
			settle(t, d)
		}
		if err := unix.Setxattr(d.Path(), "user.mine", []byte("1"), 0); err != nil {
			t.Skipf("no attributes on %s: %v", d.Path(), err)
		}
		if d.Untouched() || d.Clean() {
			t.Errorf("settled %v: a directory with attributes is taken for one as it was made", settled)
		}
	}
}

func TestOtherOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to have several users")
	}
	for _, settled := range []bool{false, true} {
		d := hold(t)
		if settled {
			settle(t, d)
		}
		if err := os.Chown(d.Path(), 65534, -1); err != nil {
			t.Fatal(err)
		}
		if d.Untouched() || d.Clean() {
			t.Errorf("settled %v: another's", settled)
		}
	}
}
