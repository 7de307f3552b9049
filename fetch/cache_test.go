package fetch

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// cached installs a program of its own text, as if it was used so long ago, and returns its version.
func cached(t *testing.T, f *Fetcher, program, text string, ago time.Duration) Version {
	t.Helper()
	file := write(t, filepath.Join(t.TempDir(), "run.sh"), []byte("#!/bin/sh\necho "+text+"\n"), 0o755)
	v, err := f.Ensure(t.Context(), program, "rsync:"+file, nil)
	noErr(t, err)
	then := time.Now().Add(-ago)
	noErr(t, os.Chtimes(filepath.Join(v.Dir, manifestFile), then, then))
	return v
}

func wantThere(t *testing.T, what string, v Version, there bool) {
	t.Helper()
	if _, err := os.Lstat(v.Dir); (err == nil) != there {
		t.Errorf("%s: %v, want it there: %v", what, err, there)
	}
}

// Versions leave by their last use, over all programs; those that somebody holds stay.
func TestTrim(t *testing.T) {
	t.Parallel()
	o := testOptions(t)
	o.CacheBytes = 0
	f := newFetcher(t, o)
	oldest := cached(t, f, "a", "1", 5*time.Hour)
	heldBefore := cached(t, f, "a", "2", 4*time.Hour)
	old := cached(t, f, "b", "3", 3*time.Hour)
	busy := cached(t, f, "c", "4", 2*time.Hour)
	used := cached(t, f, "b", "5", 2*time.Hour)
	young := cached(t, f, "a", "6", time.Hour)
	write(t, filepath.Join(o.Dir, "hand", "run.sh"), []byte(script), 0o755)
	release, err := heldBefore.Hold()
	noErr(t, err)
	noErr(t, os.Chtimes(filepath.Join(heldBefore.Dir, manifestFile), time.Time{}, time.Now().Add(-4*time.Hour)))
	again, err := used.Hold()
	noErr(t, err)
	again() // it was used just now
	fetching, err := f.tryFlock("c")
	noErr(t, err)

	f.opts.CacheBytes = 5 * f.extent(young.Dir).bytes
	newest := cached(t, f, "a", "7", 0)
	wantThere(t, "used longest ago", oldest, false)
	wantThere(t, "next after that", old, false)
	for what, v := range map[string]Version{"held": heldBefore, "being fetched": busy, "used again": used, "young": young, "new": newest} {
		wantThere(t, what, v, true)
	}
	noErr(t, fetching.Close())

	release()
	f.opts.CacheBytes = 1
	last := cached(t, f, "d", "8", 0)
	for what, v := range map[string]Version{"held no more": heldBefore, "fetched": busy, "used again": used, "young": young, "new": newest} {
		wantThere(t, what, v, false)
	}
	wantThere(t, "the last one, beyond the limit by itself", last, true)
	wantThere(t, "put there by hand", Version{Dir: filepath.Join(o.Dir, "hand")}, true)
	if left, err := os.ReadDir(filepath.Join(o.Dir, stageDir)); err != nil || len(left) != 0 {
		t.Errorf("staging holds %v, %v", left, err)
	}
	if len(f.complete) != 0 || len(f.extents) != 1 {
		t.Errorf("remembered are %v and %v", f.complete, f.extents)
	}
}

// Who holds a version too late is told, also when another directory has taken its place.
func TestHoldOfARemovedVersion(t *testing.T) {
	t.Parallel()
	f := newFetcher(t, testOptions(t))
	v := cached(t, f, "p", "1", time.Hour)
	dir, err := os.Open(v.Dir)
	noErr(t, err)
	defer func() { _ = dir.Close() }()
	noErr(t, f.remove(&stored{program: "p", hash: v.SHA256}, ""))
	if _, err := v.Hold(); !errors.Is(err, ErrRemoved) {
		t.Errorf("a version that is gone: %v", err)
	}
	cached(t, f, "p", "1", time.Hour)
	if err := v.used(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a version that was fetched again: %v", err)
	}
	release, err := v.Hold()
	noErr(t, err)
	if err := f.remove(&stored{program: "p", hash: v.SHA256}, ""); err == nil {
		t.Error("a version that is held was removed")
	}
	release()
	noErr(t, f.remove(&stored{program: "p", hash: v.SHA256}, ""))
	if _, err := f.Ensure(t.Context(), "p", "rsync:/nowhere/run.sh#sha256="+v.SHA256, nil); err == nil {
		t.Error("a removed version counts as installed")
	}
}
