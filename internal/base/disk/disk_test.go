package disk

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
)

func TestFree(t *testing.T) {
	t.Parallel()
	if free, err := Free(t.TempDir()); err != nil || free == 0 {
		t.Errorf("%d, %v, want some space", free, err)
	}
	if free, err := Free("/proc"); err != nil || free != Unknown {
		t.Errorf("%d, %v, want a file system without size", free, err)
	}
	missing := filepath.Join(t.TempDir(), "none")
	if _, err := Free(missing); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("%v, want the missing path", err)
	}
}

// Check goes from nil to a FullError and back with the space.
func TestGuardOnASmallDisk(t *testing.T) {
	t.Parallel()
	small := hosttest.SmallDisk(t, "1m")
	before, err := Free(small)
	if err != nil || before != 1<<20 {
		t.Fatalf("%d, %v, want 1 MiB", before, err)
	}
	g, err := NewGuard(512<<10, t.TempDir(), filepath.Join(small, "not", "yet"))
	if err != nil || len(g.Paths) != 2 {
		t.Fatalf("%+v, %v, want two file systems", g, err)
	}
	g.Paths = g.Paths[1:] // the other disk is as full as it is
	if err := g.Check(); err != nil {
		t.Error(err)
	}
	filler := hosttest.FillDisk(t, small)
	g.good.Store(int64(time.Hour))
	if err := g.Check(); err != nil {
		t.Errorf("%v, want the good answer of before", err)
	}
	g.good.Store(0)
	var full *FullError
	if err := g.Check(); !errors.As(err, &full) || full.Path != small || full.Free != 0 || full.Reserve != 512<<10 {
		t.Errorf("%v, want a FullError", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := g.Check(); err != nil {
		t.Error(err)
	}
}

func TestGuardAsksEachDiskOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g, err := NewGuard(1, dir, "", filepath.Join(dir, "a", "b"), dir, "/proc")
	if err != nil || len(g.Paths) != 2 || g.Paths[0] != dir || g.Paths[1] != "/proc" {
		t.Errorf("%+v, %v", g, err)
	}
	if err := g.Check(); err != nil {
		t.Error(err)
	}
}

func TestGuardSaysWhatItCannotSee(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewGuard(1, filepath.Join(file, "below")); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%v, want an error about the file", err)
	}
	g := &Guard{Paths: []string{filepath.Join(file, "below")}, Reserve: 1}
	var full *FullError
	if err := g.Check(); err == nil || errors.As(err, &full) {
		t.Errorf("%v, want an error that is no FullError", err)
	}
	g.Reserve = 0
	if err := g.Check(); err != nil {
		t.Errorf("without a reserve: %v", err)
	}
}

func TestFullErrorNamesEverything(t *testing.T) {
	t.Parallel()
	err := &FullError{Path: "/p", Free: 1000, Reserve: 64<<20 + 52<<10}
	const want = "the disk of '/p' has 1000 bytes free, less than the reserve of 64.1 MiB: make room, or lower [worker] disk_reserve"
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	for n, want := range map[uint64]string{0: "0 bytes", 1024: "1.0 KiB", 3 << 30: "3.0 GiB", 2 << 40: "2.0 TiB", Unknown: "16777216.0 TiB"} {
		if got := SizeText(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// A file is the old one or the new one, with the mode that was asked for, and nothing is left beside it.
func TestWriteFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	want := func(text string) {
		t.Helper()
		got, err := os.ReadFile(file)
		info, e := os.Stat(file)
		if err := errors.Join(err, e); err != nil || string(got) != text || info.Mode() != 0o600 {
			t.Errorf("file %q of mode %v, error %v; want %q", got, info.Mode(), err, text)
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
			t.Errorf("left are %v, error %v", all, err)
		}
	}
	for _, text := range []string{"one", "", "another"} {
		if err := WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want(text)
	}
	hosttest.WithoutSync(t, func() {
		if err := WriteFile(file, []byte("lost"), 0o600); !errors.Is(err, unix.EIO) {
			t.Errorf("error %v, want that of the disk", err)
		}
		if err := SyncDir(dir); !errors.Is(err, unix.EIO) {
			t.Errorf("directory: error %v, want that of the disk", err)
		}
	})
	want("another")
	if err := WriteFile(filepath.Join(file, "below"), nil, 0o600); err == nil {
		t.Error("a file below a file is written")
	}
}

// However it is written, a scratch file knows what was.
func TestScratch(t *testing.T) {
	t.Parallel()
	s, err := NewScratch(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	_, err1 := io.Copy(s, strings.NewReader("ab"))
	_, err2 := io.Copy(s, io.LimitReader(strings.NewReader("c..."), 1))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte("abc"))); s.Size() != 3 || s.SHA256() != want {
		t.Errorf("%d bytes, hash %s, want 3, %s", s.Size(), s.SHA256(), want)
	}
}
