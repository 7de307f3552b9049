package worker

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	sm "github.com/tdf-go/tdf/statemachine"
)

func TestClock(t *testing.T) {
	t.Parallel()
	c := newClock(1e15)
	if d, ok := c.until(c.answer.Add(10 * sm.Second)); !ok || d > 10*time.Second || d < 9*time.Second {
		t.Errorf("until 10 s ahead: %v, %v", d, ok)
	}
	if d, ok := c.until(0); !ok || d != 0 {
		t.Errorf("until the past: %v, %v", d, ok)
	}
	for _, never := range []sm.Time{sm.Never, sm.Never - 1, 250e15} {
		if d, ok := c.until(never); ok {
			t.Errorf("until %d: %v", never, d)
		}
	}
	if now := c.now(); now < c.answer || now > c.answer.Add(5*sm.Second) {
		t.Errorf("now is %d", now)
	}
}

func TestOutlive(t *testing.T) {
	t.Parallel()
	parent, cancel := context.WithCancel(t.Context())
	long, end := outlive(parent, time.Hour)
	short, endShort := outlive(parent, time.Millisecond)
	defer endShort()
	cancel()
	<-short.Done()
	if long.Err() != nil {
		t.Error("ended with its parent")
	}
	end()
	if long.Err() == nil {
		t.Error("not ended by its own cancel")
	}
}

// Read-only directories, as module caches are, can be removed afterwards, and
// what a link points at is left alone.
func TestMakeWritable(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	inner := filepath.Join(dir, "a", "b")
	for _, err := range []error{
		os.MkdirAll(inner, 0o755), os.Chmod(outside, 0o500), os.Symlink(outside, filepath.Join(dir, "link")),
		os.Chmod(inner, 0o100), os.Chmod(filepath.Dir(inner), 0o500), makeWritable(dir),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]os.FileMode{inner: 0o700, filepath.Dir(inner): 0o700, outside: 0o500} {
		if fi, err := os.Stat(name); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want mode %v", name, fi, err, want)
		}
	}
}
