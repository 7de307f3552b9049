package capture

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A42: the configured file holds everything, also what the excerpt leaves out.
func TestNamedFileHoldsEverything(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "res/deep/w-1-0-p.out")
	for range 2 { // a second round replaces, it does not append
		c, err := run(t, open(t, Options{Limit: 4, File: out}), "echo 0123456789")
		if err != nil || string(c.Data) != "01"+Marker(7)+"9\n" {
			t.Errorf("%q, %v", c.Data, err)
		}
		if got := string(read(t, out)); got != "0123456789\n" {
			t.Errorf("got %q", got)
		}
	}
}

// Who still writes to the file of an earlier round does not reach the next one.
func TestExistingFileIsReplaced(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "out")
	write(t, name, []byte("old"))
	old, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Close() }()
	if _, err := run(t, open(t, Options{Limit: 9, File: name}), "echo new"); err != nil {
		t.Fatal(err)
	}
	if _, err := old.WriteString("late"); err != nil {
		t.Fatal(err)
	}
	if got := string(read(t, name)); got != "new\n" {
		t.Errorf("got %q", got)
	}
}

func TestPlantedFileIsRefused(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	victim := filepath.Join(base, "victim")
	write(t, victim, []byte("precious"))
	link, pipe := filepath.Join(base, "link"), filepath.Join(base, "pipe")
	if err := errors.Join(os.Symlink(victim, link), unix.Mkfifo(pipe, 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{link, pipe, base, victim + "/below", "/dev/full"} {
		_, err := Open(Options{File: name, Stream: "stderr"})
		var e *OutputError
		if !errors.As(err, &e) || e.Name != name || e.Stream != "stderr" || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := string(read(t, victim)); got != "precious" {
		t.Errorf("got %q", got)
	}
}

// A full disk is reported, but neither blocks the program nor loses the excerpt.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	small := t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("needs the right to mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() {
		// Detached, since a process that another test is forking may still hold a file of it.
		if err := unix.Unmount(small, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	name := filepath.Join(small, "out")
	c, err := run(t, open(t, Options{Limit: 1 << 20, File: name, Stream: "stdout"}), "head -c 1000000 /dev/zero; printf end")
	var e *OutputError
	if !errors.As(err, &e) || !errors.Is(err, syscall.ENOSPC) || e.Name != name || e.Stream != "stdout" {
		t.Errorf("got %v", err)
	}
	if c.Size != 1_000_003 || c.Truncated || !strings.HasSuffix(string(c.Data), "\x00end") {
		t.Errorf("%d bytes, truncated %v", c.Size, c.Truncated)
	}
}

// The same where nothing can be mounted, and for an error at the very first byte.
func TestFileThatTakesNothing(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{Limit: 10})
	s.pump.file = full
	c, err := run(t, s, "echo text; echo more")
	if !errors.Is(err, syscall.ENOSPC) || string(c.Data) != "text\nmore\n" {
		t.Errorf("%q, %v", c.Data, err)
	}
	if _, again := s.Finish(); !errors.Is(again, syscall.ENOSPC) {
		t.Errorf("again: %v", again)
	}
}

// Root makes no file where a link of another user leads.
func TestForeignLinkOnTheWay(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to have several users")
	}
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	for _, err := range []error{
		os.Mkdir(target, 0o755), os.Symlink("target", filepath.Join(dir, "mine")), os.Symlink(target, filepath.Join(dir, "theirs")),
		os.Lchown(filepath.Join(dir, "theirs"), 65534, 65534), os.Symlink("circle", filepath.Join(dir, "circle")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"mine/a": "", "mine/b": "", "mine/new/c": "", "theirs/d": "which root does not follow", "theirs/new/e": "which root does not follow",
		"circle/f": "too many levels",
	} {
		file, err := openNamed(filepath.Join(dir, name))
		if err == nil {
			_ = file.Close()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	var made []string
	entries, err := os.ReadDir(target)
	for _, e := range entries {
		made = append(made, e.Name())
	}
	if err != nil || strings.Join(made, " ") != "a b new" {
		t.Errorf("made are %v, %v", made, err)
	}
}
