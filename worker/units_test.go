package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// A file for the program is made, never opened: a FIFO in its place holds up nobody.
func TestPlantOpensNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "1"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if err := plant(root, "1", []byte("x")); !errors.Is(err, os.ErrExist) {
		t.Errorf("%v, want that it is there", err)
	}
}
