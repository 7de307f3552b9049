package archive

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
)

// What is written can be read at once, and is sealed with a manifest at the end.
func TestWrite(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "archive")
	w := open(t, dir)
	noErr(t, w.Write(nil))
	if got := files(t, dir, ""); len(got) != 0 {
		t.Errorf("nothing was written, and there is %v", got)
	}
	noErr(t, w.Write(records(3, 4, 2)))
	wantIDs(t, dir, 2, 4)
	noErr(t, w.Write(records(3, 9)))
	wantIDs(t, dir, 2, 4, 9)
	noErr(t, w.Close())
	wantIDs(t, dir, 2, 4, 9)
	segments := files(t, dir, ".zst")
	if len(segments) != 1 || len(files(t, dir, "")) != 2 {
		t.Fatalf("there is %v, want a segment and its manifest", files(t, dir, ""))
	}
	m, err := readManifest(segments[0])
	noErr(t, err)
	want := Counts{Records: 3, FirstID: 2, LastID: 9, Oldest: "1002.000000", Newest: "1009.000000", Outcomes: map[string]int64{"succeeded": 3}}
	if !reflect.DeepEqual(m.Counts, want) || m.Namespace != ns || m.TDF != "test" || m.Format != 1 || m.Cut != 0 {
		t.Errorf("manifest %+v", m)
	}
	all, _ := read(t, dir)
	if all[0].Fields["0:output"] != "output 4\n" {
		t.Errorf("%+v", all[0])
	}
}

// Archives are readable by their owner and its group alone.
func TestModes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "archive")
	w := open(t, dir)
	noErr(t, w.Write(records(1, 1)))
	noErr(t, w.Close())
	for path, want := range map[string]fs.FileMode{dir: 0o700, files(t, dir, ".zst")[0]: 0o640, files(t, dir, ".json")[0]: 0o640} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&^want != 0 {
			t.Errorf("%s: %v, %v, want at most %v", path, info.Mode(), err, want)
		}
	}
}

// A segment is sealed when it is large or old, and the next one is begun.
func TestSeals(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), &clock{}
	w := open(t, dir, c.set, func(o *Options) { o.MaxBytes = 2000 })
	for id := range int64(100) {
		noErr(t, w.Write(records(1, id+1)))
	}
	if n := len(files(t, dir, ".zst")); n < 5 || n > 50 {
		t.Errorf("%d segments", n)
	}
	for _, path := range files(t, dir, ".zst") {
		if m, err := readManifest(path); err != nil || m.Bytes < 2000 || m.Bytes > 3000 {
			t.Errorf("%+v, %v", m, err)
		}
	}
	noErr(t, w.Write(records(1, 101)))
	n := len(files(t, dir, ".zst"))
	c.now = c.now.Add(59 * time.Minute)
	noErr(t, w.Tend())
	if got := len(files(t, dir, ".zst")); got != n {
		t.Errorf("sealed within the hour")
	}
	c.now = c.now.Add(time.Minute)
	noErr(t, w.Tend())
	noErr(t, w.Tend())
	if got := len(files(t, dir, ".zst")); got != n+1 || len(files(t, dir, partEnd)) != 0 {
		t.Errorf("not sealed after an hour: %v", files(t, dir, ""))
	}
	noErr(t, w.Close())
	if got := ids(t, dir); len(got) != 101 {
		t.Errorf("%d tasks, want 101", len(got))
	}
}

// Writers on one directory do not touch the parts of one another, and each seals what those have left that are gone.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	noErr(t, a.Write(records(1, 1)))
	noErr(t, b.Write(records(1, 2)))
	noErr(t, a.Write(records(1, 3)))
	if got := files(t, dir, partEnd); len(got) != 2 {
		t.Fatalf("%v, want two parts", got)
	}
	a.abandon() // as if it were killed
	noErr(t, b.Close())
	if got := files(t, dir, partEnd); len(got) != 1 {
		t.Fatalf("%v, want the abandoned part", got)
	}
	wantIDs(t, dir, 1, 2, 3)
	other := open(t, dir, func(o *Options) { o.Namespace = "other" })
	if got := files(t, dir, partEnd); len(got) != 1 {
		t.Errorf("another namespace has sealed it")
	}
	noErr(t, other.Close())
	c := open(t, dir)
	if got := files(t, dir, ""); len(got) != 4 || len(files(t, dir, partEnd)) != 0 {
		t.Errorf("%v, want two segments with manifests", got)
	}
	wantIDs(t, dir, 1, 2, 3)
	noErr(t, c.Close())
}

// A disk that is full, or a file that was taken away, makes the batch not written; once there is room all goes on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := hosttest.SmallDisk(t, "1m")
	w := open(t, dir)
	noErr(t, w.Write(records(1, 1)))
	filler := hosttest.FillDisk(t, dir)
	big := record(2, 1)
	big.Fields["0:output"] = string(noise(200 << 10))
	for range 3 {
		if err := w.Write([]Record{big}); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%v, want that the disk is full", err)
		}
	}
	wantIDs(t, dir, 1)
	if err := w.seal(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("sealed on a full disk: %v", err)
	}
	wantIDs(t, dir, 1)
	noErr(t, os.Remove(filler))
	noErr(t, w.Write(records(1, 3))) // smaller than what was there of the other one
	noErr(t, w.seal())
	wantIDs(t, dir, 1, 3)
	noErr(t, w.Write([]Record{big}))
	noErr(t, w.Close())
	wantIDs(t, dir, 1, 2, 3)
}

func noise(n int) []byte {
	text := make([]byte, n)
	x := uint32(1)
	for i := range text {
		x = x*1664525 + 1013904223
		text[i] = 'a' + byte(x>>24)%26
	}
	return text
}

func TestPartTakenAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := open(t, dir)
	noErr(t, w.Write(records(1, 1)))
	noErr(t, os.Remove(files(t, dir, partEnd)[0]))
	if err := w.Write(records(1, 2)); err == nil || !strings.Contains(err.Error(), "removed") {
		t.Errorf("%v, want that the file was removed", err)
	}
	noErr(t, w.Write(records(1, 2)))
	wantIDs(t, dir, 2)
	noErr(t, os.RemoveAll(dir))
	for range 2 {
		if err := w.Write(records(1, 3)); err == nil {
			t.Error("written into a directory that is gone")
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory was made anew: it may be a disk that is not mounted (%v)", err)
	}
	noErr(t, os.Mkdir(dir, 0o700))
	noErr(t, w.Write(records(1, 3)))
	noErr(t, w.Close())
	wantIDs(t, dir, 3)
}

func TestNoPermission(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	noErr(t, os.WriteFile(file, nil, 0o600))
	if _, err := Open(Options{Dir: filepath.Join(file, "below"), Namespace: ns}); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("%v, want that it is no directory", err)
	}
	if _, err := Open(Options{Dir: "/proc/self", Namespace: ns}); err == nil {
		t.Error("a directory that nobody can write was taken")
	}
}

// What had left Redis before is noted once, for each life of the namespace.
func TestBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got, err := Before(dir, ns, 1); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	for epoch, r := range map[int64]Range{1: {1, 5}, 3: {2, 2}} {
		noErr(t, Begin(dir, ns, epoch, func() ([]Range, error) { return []Range{r}, nil }))
		noErr(t, Begin(dir, ns, epoch, func() ([]Range, error) { t.Error("asked again"); return nil, nil }))
		if got, err := Before(dir, ns, epoch); !slices.Equal(got, []Range{r}) || err != nil {
			t.Errorf("%v, %v", got, err)
		}
	}
	broken := errors.New("redis")
	if err := Begin(dir, "other", 1, func() ([]Range, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	noErr(t, os.WriteFile(filepath.Join(dir, beforeName(ns, 1)), []byte("{"), 0o600))
	var damage *DamageError
	if _, err := Before(dir, ns, 1); !errors.As(err, &damage) {
		t.Errorf("%v, want a DamageError", err)
	}
}
