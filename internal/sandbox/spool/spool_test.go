package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOldestFirstAcrossRestarts(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "own", "spool")
	s := open(t, dir)
	noErr(t, s.Put("z", []byte("1")))
	noErr(t, s.Put("a", nil))
	noErr(t, s.Put("m", []byte("line\n\x00\xff")))
	want(t, s, "z=1", "a=", "m=line\n\x00\xff")
	noErr(t, s.Close())
	noErr(t, s.Close())
	s = open(t, dir)
	noErr(t, s.Put("b", []byte("4")))
	noErr(t, s.Put("z", []byte("5")))
	want(t, s, "a=", "m=line\n\x00\xff", "b=4", "z=5")
	noErr(t, s.Remove("m"))
	noErr(t, s.Remove("m"))
	noErr(t, s.Remove("never there"))
	want(t, s, "a=", "b=4", "z=5")
	for path, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, dir: 0o700, s.Dir(): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want %o", path, info.Mode(), err, mode)
		}
	}
}

// Names go nowhere but into their directory, whatever is in them.
func TestNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names := []string{"..", "../../x", "/etc/passwd", ".tmp-1", "lock", "a%2Fb", "a/b", "ä\n", strings.Repeat("x", maxName),
		strings.Repeat("ä", 64) + "1", strings.Repeat("ä", 64) + "2"}
	var pairs []string
	for _, name := range names {
		s, err := Open(dir, name, name)
		noErr(t, err)
		for _, name := range names {
			noErr(t, s.Put(name, []byte(name)))
			pairs = append(pairs, name+"="+name)
		}
		want(t, s, pairs...)
		pairs = nil
		noErr(t, s.Close())
	}
	spaces, err := os.ReadDir(dir)
	if err != nil || len(spaces) != len(names) {
		t.Errorf("%d directories, want %d", len(spaces), len(names))
	}
	s := open(t, dir)
	for _, name := range []string{"", "\xff", strings.Repeat("x", maxName+1)} {
		if err := s.Put(name, nil); !errors.Is(err, ErrInvalidName) {
			t.Errorf("%.10q: %v", name, err)
		}
		if _, err := Open(dir, "n", name); !errors.Is(err, ErrInvalidName) {
			t.Errorf("%.10q: %v", name, err)
		}
	}
}

// TestOneProcess: a second holder is refused, also in another process.
func TestOneProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	if _, err := Open(dir, "n", "w"); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "'w'") {
		t.Errorf("%v, want ErrLocked", err)
	}
	out, err := child(dir).Output()
	if err == nil || !strings.Contains(string(out), ErrLocked.Error()) {
		t.Errorf("%s, %v, want ErrLocked", out, err)
	}
	other, err := Open(dir, "n", "w2")
	noErr(t, err)
	noErr(t, other.Close())
	noErr(t, s.Close())
	noErr(t, open(t, dir).Put("a", nil))
}

func TestClosed(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	noErr(t, s.Put("a", []byte("1")))
	all, err := s.All()
	noErr(t, err)
	noErr(t, s.Close())
	_, errAll := s.All()
	_, errData := all[0].Data()
	for _, err := range []error{errAll, errData, s.Put("a", nil), s.Remove("a")} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	}
}

// Slots store at the same time, while the entries are delivered.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	var wg sync.WaitGroup
	for slot := range 8 {
		wg.Go(func() {
			for i := range 20 {
				if err := s.Put(fmt.Sprint(slot, ".", i), content(i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	delivered := map[string]int{}
	deliver := func() {
		all, err := s.All()
		if err != nil {
			t.Error(err)
		}
		for i := range all {
			delivered[all[i].Name]++
			if err := s.Remove(all[i].Name); err != nil {
				t.Error(err)
			}
		}
	}
	for range 10 {
		deliver()
	}
	wg.Wait()
	deliver()
	for name, n := range delivered {
		if n != 1 {
			t.Errorf("%s was delivered %d times", name, n)
		}
	}
	if len(delivered) != 160 {
		t.Errorf("%d delivered, want 160", len(delivered))
	}
}

// An entry that is delivered while All looks at the files is no damage.
func TestRemovedWhileLooking(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	noErr(t, s.Put("a", nil))
	noErr(t, s.Put("b", nil))
	files, err := os.ReadDir(s.Dir())
	noErr(t, err)
	noErr(t, s.Remove("a"))
	if entries, problems := s.look(files); len(entries) != 1 || entries[0].Name != "b" || len(problems) != 0 {
		t.Errorf("%+v, %v, want b only", entries, problems)
	}
}

// A spool to which others could write is not used: its entries are reported as they stand.
func TestNotPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	noErr(t, s.Put("mine", []byte("1")))
	noErr(t, s.Close())
	noErr(t, os.Chmod(s.Dir(), 0o720))
	if _, err := Open(dir, "n", "w"); !errors.Is(err, ErrNotPrivate) || !strings.Contains(err.Error(), s.Dir()) {
		t.Errorf("writable by a group: %v", err)
	}
	noErr(t, os.Chmod(s.Dir(), 0o700))
	if os.Geteuid() == 0 {
		noErr(t, os.Chown(s.Dir(), 65534, 65534))
		if _, err := Open(dir, "n", "w"); !errors.Is(err, ErrNotPrivate) {
			t.Errorf("of another user: %v", err)
		}
	}
}

// A program that is being started has each file of its worker until it runs: a spool that was closed meanwhile is free.
func TestClosedWhileAProgramStarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	inherited, err := unix.Dup(int(s.lock.Fd()))
	noErr(t, err)
	defer unix.Close(inherited)
	noErr(t, s.Close())
	noErr(t, open(t, dir).Close())
}
