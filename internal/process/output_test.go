package process

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMarker(t *testing.T) {
	t.Parallel()
	if got := Marker(123456); got != "\n[tdf: 123456 bytes left out]\n" {
		t.Errorf("got %q", got)
	}
}

// Around the limit: nothing is cut at it, and one byte more keeps exactly it.
func TestOutputIsCutInTheMiddle(t *testing.T) {
	t.Parallel()
	dir := script(t, `printf %s "$1"; printf %s "$1" >&2`)
	for _, c := range []struct {
		limit     int64
		out, want string
	}{
		{9, "123456789", "123456789"},
		{8, "123456789", "1234" + Marker(1) + "6789"},
		{7, "123456789", "1234" + Marker(2) + "789"},
		{1, "123456789", "1" + Marker(8)},
		{1, "", ""},
	} {
		r := mustRun(t, Spec{Dir: dir, Args: []string{c.out}, OutputLimit: c.limit})
		if string(r.Stdout) != c.want || string(r.Stderr) != c.want {
			t.Errorf("limit %d: %q, %q; want %q", c.limit, r.Stdout, r.Stderr, c.want)
		}
		cut := len(c.want) > len(c.out)
		if r.StdoutTruncated != cut || r.StderrTruncated != cut || r.StdoutBytes != int64(len(c.out)) {
			t.Errorf("limit %d: %+v", c.limit, r)
		}
	}
}

// A43: 20 MB of all byte values.
func TestBinaryOutputIsExact(t *testing.T) {
	t.Parallel()
	want := make([]byte, 20_000_000)
	for i := range want {
		want[i] = byte(i * i >> 7)
	}
	dir := script(t, `cat data; cat data >&2`)
	write(t, filepath.Join(dir, "data"), string(want), 0o644)
	name := filepath.Join(t.TempDir(), "out")
	r := mustRun(t, Spec{Dir: dir, OutputLimit: 20_000_000, Stdout: name})
	if !bytes.Equal(r.Stdout, want) || !bytes.Equal(r.Stderr, want) || r.StdoutTruncated {
		t.Errorf("sizes %d, %d, truncated %v", len(r.Stdout), len(r.Stderr), r.StdoutTruncated)
	}
	if file, err := os.ReadFile(name); err != nil || sha256.Sum256(file) != sha256.Sum256(want) {
		t.Errorf("the named file differs: %d bytes, %v", len(file), err)
	}
}

// Not parallel: it measures what the whole process allocates.
func TestHugeOutputNeedsLittleMemory(t *testing.T) {
	const size = 100 << 20
	dir := script(t, fmt.Sprintf(`printf begin; head -c %d /dev/zero; printf end`, size-8))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := mustRun(t, Spec{Dir: dir})
	runtime.ReadMemStats(&after)
	if r.StdoutBytes != size || !r.StdoutTruncated {
		t.Errorf("StdoutBytes %d, truncated %v", r.StdoutBytes, r.StdoutTruncated)
	}
	marker := Marker(size - DefaultOutputLimit)
	if int64(len(r.Stdout)) != DefaultOutputLimit+int64(len(marker)) || !bytes.Contains(r.Stdout, []byte(marker)) ||
		!bytes.HasPrefix(r.Stdout, []byte("begin\x00")) || !bytes.HasSuffix(r.Stdout, []byte("\x00end")) {
		t.Errorf("%d bytes kept", len(r.Stdout))
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Errorf("%d bytes allocated for a limit of 1 MiB", grown)
	}
}

// A42: the configured files hold everything, also what the Result leaves out.
func TestNamedFilesHoldEverything(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	out, errs := filepath.Join(base, "res/deep/w-1-0-p.out"), filepath.Join(base, "err/x")
	s := Spec{Dir: script(t, `echo 0123456789; echo oops >&2`), Stdout: out, Stderr: errs, OutputLimit: 4}
	mustRun(t, s)
	mustRun(t, s) // a second round replaces, it does not append
	for name, want := range map[string]string{out: "0123456789\n", errs: "oops\n"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
}

// Who still writes to the file of an earlier round does not reach the next one.
func TestExistingFileIsReplaced(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "out")
	write(t, name, "old", 0o644)
	old, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = old.Close() }()
	r := mustRun(t, Spec{Dir: script(t, `echo new`), Stdout: name})
	if _, err := old.WriteString("late"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != "new\n" || string(r.Stdout) != "new\n" {
		t.Errorf("file %q, stdout %q, %v", got, r.Stdout, err)
	}
}

func TestPlantedFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := script(t, `echo new`)
	base := t.TempDir()
	victim := filepath.Join(base, "victim")
	write(t, victim, "precious", 0o644)
	link, pipe, folder := filepath.Join(base, "link"), filepath.Join(base, "pipe"), filepath.Join(base, "dir")
	symlink(t, victim, link)
	mkfifo(t, pipe)
	mkdir(t, folder)
	for _, name := range []string{link, pipe, folder, victim + "/below"} {
		for _, s := range []Spec{{Dir: dir, Stdout: name}, {Dir: dir, Stderr: name}} {
			_, err := Run(context.Background(), s)
			expectReason(t, err, ReasonOutput)
			if err != nil && !strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), victim) {
				t.Errorf("%s is not named in %v", name, err)
			}
		}
	}
	if got, err := os.ReadFile(victim); err != nil || string(got) != "precious" {
		t.Errorf("victim holds %q, %v", got, err)
	}
}

func TestOpenUnlinkedLeavesNoName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fd, err := openUnlinked(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if _, err := unix.Write(fd, []byte("kept")); err != nil {
		t.Fatal(err)
	}
	if data, size, err := readBack(fd, 10); err != nil || size != 4 || string(data) != "kept" {
		t.Errorf("got %q, %d, %v", data, size, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := openUnlinked(dir + "/no"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// An unreadable stream is reported with its name, and the other one is kept.
func TestUnreadableOutput(t *testing.T) {
	t.Parallel()
	files, err := openStdio(&Spec{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer files.close()
	if _, err := unix.Write(files[2], []byte("kept")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Close(files[1]); err != nil {
		t.Fatal(err)
	}
	files[1] = -1
	var r Result
	err = r.collect(&Spec{OutputLimit: 10, Stdout: "some/file"}, &files)
	var e *OutputError
	if !errors.As(err, &e) || e.Stream != "stdout" || e.Name != "some/file" || !errors.Is(err, syscall.EBADF) {
		t.Errorf("got %v", err)
	}
	if string(r.Stderr) != "kept" || !strings.Contains(err.Error(), "some/file") {
		t.Errorf("stderr %q, %v", r.Stderr, err)
	}
}

// A program's output that no longer fits is not taken for the whole.
func TestFullDiskIsReported(t *testing.T) {
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
	r, err := Run(context.Background(), Spec{
		Dir: script(t, `head -c 1000000 /dev/zero 2>/dev/null; exit 0`), Env: os.Environ(), TempDir: small,
	})
	var e *OutputError
	if !errors.As(err, &e) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "full") {
		t.Errorf("got %v", err)
	}
	if r.ExitCode != 0 || r.StdoutBytes == 0 || r.StdoutBytes > 65536 {
		t.Errorf("got %d bytes, exit %d", r.StdoutBytes, r.ExitCode)
	}
}
