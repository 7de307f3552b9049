package workdir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// made makes a private directory as a round does.
func made(t *testing.T) (dir string, m Made) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "private")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	m, err := Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, m
}

func TestSpareIsReused(t *testing.T) {
	t.Parallel()
	dir, m := made(t)
	var s Spare
	parent := filepath.Dir(dir)
	if !s.Keep(dir, filepath.Join(parent, "spare."), m) {
		t.Fatal("a directory as it was made is not kept")
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("the round's directory still has its name: %v", err)
	}
	again, m2, err := s.Take(filepath.Join(parent, "7.0."))
	if err != nil || !strings.HasPrefix(again, filepath.Join(parent, "7.0.")) || !m2.holds(again) {
		t.Errorf("%q, %v", again, err)
	}
	if _, _, err := s.Take(filepath.Join(parent, "8.0.")); err == nil {
		t.Error("one directory was given out twice")
	}
	if !s.Keep(again, filepath.Join(parent, "spare."), m2) || os.Remove(s.path) != nil {
		t.Fatal("it is not kept again")
	}
	if _, _, err := s.Take(filepath.Join(parent, "9.0.")); err == nil || s.path != "" {
		t.Errorf("a directory that is gone was given out, or is still believed in: %v, %q", err, s.path)
	}
	if err := s.Remove(); err != nil {
		t.Errorf("nothing to remove: %v", err)
	}
}

// One directory is kept; Remove removes it, and it may be gone before.
func TestKeepAndRemove(t *testing.T) {
	t.Parallel()
	var s Spare
	first, m := made(t)
	second, m2 := made(t)
	if !s.Keep(first, first+".spare.", m) || s.Keep(second, second+".spare.", m2) {
		t.Error("not exactly one is kept")
	}
	path := s.path
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	if !s.Keep(second, second+".spare.", m2) || os.Remove(s.path) != nil || s.Remove() != nil {
		t.Error("one that is gone is no error")
	}
}

func TestChangedDirectoryIsNotKept(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(dir string) error{
		"a file":     func(dir string) error { return os.WriteFile(filepath.Join(dir, ".f"), nil, 0o600) },
		"other mode": func(dir string) error { return os.Chmod(dir, 0o755) },
		"a link": func(dir string) error {
			if err := os.Rename(dir, dir+"x"); err != nil {
				return err
			}
			return os.Symlink(dir+"x", dir)
		},
		"another": func(dir string) error {
			if err := os.Rename(dir, dir+"x"); err != nil {
				return err
			}
			return os.Mkdir(dir, 0o700)
		},
		"none": os.Remove,
	} {
		dir, m := made(t)
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		var s Spare
		if s.Keep(dir, filepath.Join(filepath.Dir(dir), "spare."), m) || s.path != "" {
			t.Errorf("%s: kept", what)
		}
	}
}

func TestAttributesAreNotInherited(t *testing.T) {
	t.Parallel()
	dir, m := made(t)
	if err := unix.Setxattr(dir, "user.mine", []byte("1"), 0); err != nil {
		t.Skipf("no attributes on %s: %v", dir, err)
	}
	if m.holds(dir) {
		t.Error("a directory with attributes is taken for one as it was made")
	}
}
