package fetch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Asked again, a version is not looked into while its directory is the same: what is rewritten in place is not seen, what
// is removed is.
func TestVersionIsRemembered(t *testing.T) {
	t.Parallel()
	data := tarBytes(t, goodEntries())
	o := testOptions(t)
	write(t, filepath.Join(o.WorkDir, "p.tar"), data, 0o644)
	f := newFetcher(t, o)
	dir, err := ensureDir(f, t.Context(), "p", "rsync:p.tar", nil)
	noErr(t, err)
	name := filepath.Join(dir, manifestFile)
	if !f.installed("p", sum(data)) {
		t.Fatal("it is not there")
	}
	noErr(t, os.WriteFile(name, []byte("{"), 0o644))
	if !f.installed("p", sum(data)) {
		t.Error("the manifest was read again")
	}
	noErr(t, os.Remove(name))
	if f.installed("p", sum(data)) {
		t.Error("it is there without its manifest")
	}
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
