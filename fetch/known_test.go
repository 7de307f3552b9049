package fetch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/task"
)

func wantHash(t *testing.T, f *Fetcher, program, want string) {
	t.Helper()
	if got, err := f.Hash(program); err != nil || got != want {
		t.Fatalf("hash of %s is %q, %v, want %q", program, got, err, want)
	}
}

// The hash is that of the file fetched, follows a new installation, also one by
// another process, and is empty for what no fetch installed.
func TestHash(t *testing.T) {
	t.Parallel()
	first, second := tarBytes(t, goodEntries()), zipBytes(t, goodEntries())
	o := testOptions(t)
	write(t, filepath.Join(o.WorkDir, "p.tar"), first, 0o644)
	write(t, filepath.Join(o.WorkDir, "p.zip"), second, 0o644)
	write(t, filepath.Join(o.Dir, "hand", "run.sh"), []byte(script), 0o755)
	f, other := newFetcher(t, o), newFetcher(t, o)
	wantHash(t, f, "p", "")
	dir, err := f.Ensure(t.Context(), "p", "rsync:p.tar", nil)
	noErr(t, err)
	wantHash(t, f, "p", sum(first))
	wantHash(t, f, "hand", "")
	noErr(t, os.RemoveAll(dir))
	wantHash(t, f, "p", "")
	_, err = other.Ensure(t.Context(), "p", "rsync:p.zip", nil)
	noErr(t, err)
	wantHash(t, f, "p", sum(second))

	noErr(t, os.CopyFS(filepath.Join(o.Dir, "copy"), os.DirFS(dir)))
	wantHash(t, f, "copy", "")
	write(t, filepath.Join(o.Dir, "damaged", manifestFile), []byte("{"), 0o644)
	if _, err := f.Hash("damaged"); err == nil {
		t.Error("a damaged manifest was taken for none")
	}
	if _, err := f.Hash("../p"); !errors.Is(err, task.ErrInvalidProgram) {
		t.Errorf("%v, want task.ErrInvalidProgram", err)
	}
}

// Asked again, Hash does not read the manifest: rewritten in place with the
// same time, it is not seen.
func TestHashIsRemembered(t *testing.T) {
	t.Parallel()
	data := tarBytes(t, goodEntries())
	o := testOptions(t)
	write(t, filepath.Join(o.WorkDir, "p.tar"), data, 0o644)
	f := newFetcher(t, o)
	dir, err := f.Ensure(t.Context(), "p", "rsync:p.tar", nil)
	noErr(t, err)
	wantHash(t, f, "p", sum(data))
	name := filepath.Join(dir, manifestFile)
	info, err := os.Stat(name)
	noErr(t, err)
	noErr(t, os.WriteFile(name, []byte("{"), 0o644))
	noErr(t, os.Chtimes(name, info.ModTime(), info.ModTime()))
	wantHash(t, f, "p", sum(data))
}

// A FIFO in the place of a manifest holds up nobody, and a link is not followed.
func TestManifestIsAPlainFile(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(file string) error{
		"fifo": func(file string) error { return unix.Mkfifo(file, 0o644) },
		"link": func(file string) error { return os.Symlink("run.sh", file) },
		"gone": func(file string) error { return os.Symlink("nothing", file) },
	} {
		o := testOptions(t)
		dir := filepath.Join(o.Dir, "p")
		noErr(t, os.MkdirAll(dir, 0o755))
		noErr(t, os.WriteFile(filepath.Join(dir, "run.sh"), []byte("#!/bin/sh\n"), 0o755))
		noErr(t, put(filepath.Join(dir, manifestFile)))
		if _, err := newFetcher(t, o).Ensure(t.Context(), "p", "rsync:/no/run.sh", nil); err == nil || !strings.Contains(err.Error(), manifestFile) {
			t.Errorf("%s: %v, want that it is no manifest", name, err)
		}
		if _, err := newFetcher(t, o).Ensure(t.Context(), "p", "", nil); err == nil {
			t.Errorf("%s: taken for a program that was put there by hand", name)
		}
	}
}
