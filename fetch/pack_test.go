package fetch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/task"
)

// packed is what Pack makes of a file or directory.
func packed(t *testing.T, name string) []byte {
	t.Helper()
	var b bytes.Buffer
	noErr(t, Pack(t.Context(), &b, name))
	return b.Bytes()
}

// keeper makes a fetcher that reads blobs from a map.
func keeper(t *testing.T, kept map[string][]byte) *Fetcher {
	t.Helper()
	o := testOptions(t)
	o.Blob = func(_ context.Context, hash string, w io.Writer) error {
		content, found := kept[hash]
		if !found {
			return task.ErrNoBlob
		}
		_, err := w.Write(content)
		return err
	}
	return newFetcher(t, o)
}

// someFiles fills a directory with all that is packed.
func someFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "run.sh"), []byte("#!/bin/sh\ncat data/a* data/z >all; wc -l <all\n"), 0o755)
	write(t, filepath.Join(dir, "data", "a b"), []byte("one\n"), 0o600)
	write(t, filepath.Join(dir, "data", "c"), nil, 0o644)
	noErr(t, os.Symlink("a b", filepath.Join(dir, "data", "z")))
	noErr(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	return dir
}

func TestPack(t *testing.T) {
	t.Parallel()
	dir := someFiles(t)
	content := packed(t, dir)
	f := keeper(t, map[string][]byte{sum(content): content})
	v, err := f.Ensure(t.Context(), "p", task.BlobSource(sum(content)), nil)
	noErr(t, err)
	if out := runProgram(t, v.Dir); out != "2\n" {
		t.Errorf("it wrote %q", out)
	}
	for name, want := range map[string]fs.FileMode{
		"run.sh": 0o755, "data/a b": 0o644, "data/z": fs.ModeSymlink | 0o777, "empty": fs.ModeDir | 0o755,
	} {
		if fi, err := os.Lstat(filepath.Join(v.Dir, name)); err != nil || fi.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, fi, err, want)
		}
	}
	script := filepath.Join(dir, "run.sh")
	alone := packed(t, script)
	f = keeper(t, map[string][]byte{sum(alone): alone})
	if v, err = f.Ensure(t.Context(), "p", task.BlobSource(sum(alone)), nil); err != nil || sum(alone) == sum(content) {
		t.Errorf("a file alone: %+v, %v", v, err)
	}
}

// The bytes are the same wherever the directory is, and whenever it was written.
func TestPackTwice(t *testing.T) {
	t.Parallel()
	one, other := someFiles(t), someFiles(t)
	noErr(t, os.Chtimes(filepath.Join(other, "run.sh"), time.Time{}, time.Unix(1e9, 5)))
	noErr(t, os.Chmod(filepath.Join(other, "data", "a b"), 0o664))
	was := packed(t, one)
	if !bytes.Equal(was, packed(t, other)) {
		t.Error("the same content makes other bytes")
	}
	noErr(t, os.Chmod(filepath.Join(other, "data", "a b"), 0o755))
	if bytes.Equal(was, packed(t, other)) {
		t.Error("an executable file makes the same bytes as another")
	}
}

// What a worker would refuse to unpack is refused before.
func TestPackRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(t *testing.T, dir string)
		says string
	}{
		"link outside":  {func(t *testing.T, dir string) { noErr(t, os.Symlink("../x", filepath.Join(dir, "l"))) }, "leads outside"},
		"absolute link": {func(t *testing.T, dir string) { noErr(t, os.Symlink("/etc/passwd", filepath.Join(dir, "l"))) }, "absolute"},
		"circle":        {func(t *testing.T, dir string) { noErr(t, os.Symlink("l", filepath.Join(dir, "l"))) }, "circle"},
		"fifo":          {func(t *testing.T, dir string) { noErr(t, unix.Mkfifo(filepath.Join(dir, "f"), 0o600)) }, "neither a file"},
		"setuid": {func(t *testing.T, dir string) {
			noErr(t, os.Chmod(write(t, filepath.Join(dir, "s"), nil, 0o755), 0o755|fs.ModeSetuid))
		}, "setuid"},
		"control": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "a\nb"), nil, 0o644) }, "control character"},
		"ours":    {func(t *testing.T, dir string) { write(t, filepath.Join(dir, manifestFile), nil, 0o644) }, "TDF's own files"},
		"deep": {func(t *testing.T, dir string) {
			noErr(t, os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", DefaultOptions().maxDepth+2)), 0o755))
		}, "deep"},
		"large": {func(t *testing.T, dir string) {
			noErr(t, os.Truncate(write(t, filepath.Join(dir, "l"), nil, 0o644), DefaultOptions().MaxFileBytes+1))
		}, "a file is larger"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := someFiles(t)
			c.make(t, dir)
			wantErr(t, Pack(t.Context(), io.Discard, dir), nil, "pack "+dir, c.says)
		})
	}
	wantErr(t, Pack(t.Context(), io.Discard, filepath.Join(t.TempDir(), "missing")), fs.ErrNotExist)
	wantErr(t, Pack(t.Context(), io.Discard, os.DevNull), errArchive, "neither a file")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, Pack(ctx, io.Discard, someFiles(t)), context.Canceled)
}

func TestUploadable(t *testing.T) {
	t.Parallel()
	dir := someFiles(t)
	noErr(t, Uploadable(dir, "p"))
	noErr(t, Uploadable(filepath.Join(dir, "run.sh"), "p"))
	wantErr(t, Uploadable(filepath.Join(dir, "data"), "p"), ErrNotRunnable, "does not exist")
	wantErr(t, Uploadable(filepath.Join(dir, "data", "c"), "p"), ErrNotRunnable, "run the file as a command")
	wantErr(t, Uploadable(filepath.Join(dir, "x"), "p"), fs.ErrNotExist)
	noErr(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o644))
	wantErr(t, Uploadable(dir, "p"), ErrNotRunnable, "chmod +x")
}

// What Redis keeps is compared with the hash, as everything that is fetched, and a program needs a run.sh.
func TestEnsureBlob(t *testing.T) {
	t.Parallel()
	data := filepath.Join(someFiles(t), "data")
	content := packed(t, data)
	f := keeper(t, map[string][]byte{sum(content): content, hash64: content})
	_, err := f.Ensure(t.Context(), "p", task.BlobSource(hash64), nil)
	wantErr(t, err, ErrChecksum)
	_, err = f.Ensure(t.Context(), "p", task.BlobSource(strings.Repeat("0", 64)), nil)
	wantErr(t, err, task.ErrNoBlob)
	_, err = f.Ensure(t.Context(), "p", task.BlobSource(sum(content)), nil)
	wantErr(t, err, ErrNotRunnable)
	nothingInstalled(t, f.opts)
	_, err = newFetcher(t, testOptions(t)).Ensure(t.Context(), "p", task.BlobSource(hash64), nil)
	wantErr(t, err, errForbidden)
}

// A round that is stopped while its upload is read leaves nothing, and the next one reads it anew.
func TestBlobIsStopped(t *testing.T) {
	t.Parallel()
	content := packed(t, someFiles(t))
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("the round is stopped")
	o := testOptions(t)
	o.Blob = func(ctx context.Context, _ string, w io.Writer) error {
		_, err := w.Write(content[:len(content)/2])
		noErr(t, err)
		cancel(stopped)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		_, err = w.Write(content[len(content)/2:])
		return err
	}
	f := newFetcher(t, o)
	_, err := f.Ensure(ctx, "p", task.BlobSource(sum(content)), nil)
	wantErr(t, err, stopped)
	nothingInstalled(t, o)
	v, err := f.Ensure(t.Context(), "p", task.BlobSource(sum(content)), nil)
	noErr(t, err)
	runProgram(t, v.Dir)
}

// All commands of an upload have one directory, which needs no run.sh, whatever their names.
func TestEnsureCommand(t *testing.T) {
	t.Parallel()
	content := packed(t, filepath.Join(someFiles(t), "data"))
	f := keeper(t, map[string][]byte{sum(content): content})
	first, err := f.Ensure(t.Context(), "an odd name", "command:./c"+task.Pin(sum(content)), nil)
	noErr(t, err)
	second, err := f.Ensure(t.Context(), "sh", "command:sh"+task.Pin(sum(content)), nil)
	if err != nil || first != second || first.SHA256 != sum(content) {
		t.Errorf("%+v and %+v, %v", first, second, err)
	}
	if _, err := os.Stat(filepath.Join(first.Dir, "c")); err != nil {
		t.Error(err)
	}
}

// A directory that compresses well is no bomb where we have packed it.
func TestPackZeros(t *testing.T) {
	t.Parallel()
	dir := someFiles(t)
	noErr(t, os.Truncate(filepath.Join(dir, "data", "c"), 2*ratioFree))
	content := packed(t, dir)
	f := keeper(t, map[string][]byte{sum(content): content})
	if _, err := f.Ensure(t.Context(), "p", task.BlobSource(sum(content)), nil); err != nil || len(content) > ratioFree/100 {
		t.Errorf("%d bytes, error %v", len(content), err)
	}
}
