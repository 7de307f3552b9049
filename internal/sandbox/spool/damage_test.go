package spool

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
)

// What is damaged or foreign is reported and left alone, and blocks nothing.
func TestDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir)
	noErr(t, s.Put("first", []byte("1")))
	noErr(t, s.Put("cut", []byte("0123456789")))
	noErr(t, s.Put("flipped", []byte("0123456789")))
	noErr(t, s.Put("moved", []byte("x")))
	noErr(t, s.Put("last", []byte("2")))
	path := func(file string) string { return filepath.Join(s.Dir(), file) }
	noErr(t, os.Truncate(path("cut.result"), 20))
	text, err := os.ReadFile(path("flipped.result"))
	noErr(t, err)
	noErr(t, os.WriteFile(path("flipped.result"), []byte(strings.Replace(string(text), "56789", "56780", 1)), 0o600))
	noErr(t, os.Rename(path("moved.result"), path("elsewhere.result")))
	noErr(t, os.WriteFile(path("empty.result"), nil, 0o600))
	noErr(t, os.WriteFile(path("note.txt"), []byte("x"), 0o600))
	noErr(t, os.WriteFile(path("future.result"), []byte(`{"spool":2,"name":"future"}`+"\n"), 0o600))
	noErr(t, os.WriteFile(path("endless.result"), make([]byte, 2*maxHeader), 0o600))
	noErr(t, os.Mkdir(path("dir.result"), 0o700))
	noErr(t, unix.Mkfifo(path("fifo.result"), 0o600))
	noErr(t, os.Symlink("first.result", path("link.result")))
	noErr(t, os.WriteFile(path(".tmp-7"), []byte("half"), 0o600))
	noErr(t, s.Close())

	s = open(t, dir)
	noErr(t, s.Put("new", []byte("3")))
	all, err := s.All()
	if len(all) != 3 || all[0].Name != "first" || all[1].Name != "last" || all[2].Name != "new" {
		t.Errorf("got %+v, want the whole entries", all)
	}
	for _, file := range []string{"cut.result", "flipped.result", "elsewhere.result", "empty.result", "note.txt",
		"future.result", "endless.result", "dir.result", "fifo.result", "link.result"} {
		if err == nil || !strings.Contains(err.Error(), "'"+path(file)+"'") {
			t.Errorf("%s is not reported", file)
		}
		if _, err := os.Lstat(path(file)); err != nil {
			t.Errorf("%s is gone: %v", file, err)
		}
	}
	var damaged *DamagedError
	if !errors.As(err, &damaged) || damaged.Problem == "" || strings.Count(err.Error(), "\n") != 9 {
		t.Errorf("want ten problems, got: %v", err)
	}
	if _, err := os.Lstat(path(".tmp-7")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a dead process was writing is there: %v", err)
	}
}

// An entry that goes bad between All and Data is not delivered.
func TestDamageAfterAll(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	noErr(t, s.Put("a", []byte("0123456789")))
	all, err := s.All()
	noErr(t, err)
	file := filepath.Join(s.Dir(), "a.result")
	info, err := os.Stat(file)
	noErr(t, err)
	noErr(t, os.Truncate(file, info.Size()-1))
	var damaged *DamagedError
	if _, err := all[0].Data(); !errors.As(err, &damaged) || damaged.Path != file || damaged.Problem != "holds 9 bytes of 10" {
		t.Errorf("%v, want a DamagedError", err)
	}
	noErr(t, s.Remove("a"))
	if _, err := all[0].Data(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want that it is gone", err)
	}
}

// Killed at any moment, a worker leaves every entry it was told is stored, at
// most one more, and nothing half.
func TestKilled(t *testing.T) {
	t.Parallel()
	for kill := range 5 {
		dir := t.TempDir()
		cmd := child(dir)
		out, err := cmd.StdoutPipe()
		noErr(t, err)
		noErr(t, cmd.Start())
		lines, stored := bufio.NewScanner(out), 0
		for lines.Scan() {
			if lines.Text() != fmt.Sprint(stored) {
				t.Fatalf("child said %q", lines.Text())
			}
			if stored++; stored == 5+7*kill {
				noErr(t, cmd.Process.Kill()) // it goes on until the signal is there
			}
		}
		_ = cmd.Wait()
		s := open(t, dir)
		all, err := s.All()
		noErr(t, err)
		if len(all) < stored || len(all) > stored+1 {
			t.Errorf("%d entries, the worker knew of %d", len(all), stored)
		}
		for i := range all {
			if data, err := all[i].Data(); err != nil || string(data) != string(content(i)) || all[i].Name != fmt.Sprint("task ", i) {
				t.Errorf("entry %d is %s: %v", i, all[i].Name, err)
			}
		}
		if files, err := os.ReadDir(s.Dir()); err != nil || len(files) != len(all)+1 {
			t.Errorf("%v, %v, want entries and the lock", files, err)
		}
	}
}

// With a full disk Put says so and leaves the old entry; with room it works.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	small := hosttest.SmallDisk(t, "1m")
	s := open(t, small)
	noErr(t, s.Put("a", []byte("old")))
	filler := hosttest.FillDisk(t, small)
	err := s.Put("a", make([]byte, 64<<10))
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the disk of spool_dir '"+s.Dir()+"' is full") {
		t.Errorf("%v, want that the disk is full", err)
	}
	want(t, s, "a=old")
	if files, err := os.ReadDir(s.Dir()); err != nil || len(files) != 2 {
		t.Errorf("%v, %v, want the entry and the lock", files, err)
	}
	noErr(t, os.Remove(filler))
	noErr(t, s.Put("a", []byte("new")))
	want(t, s, "a=new")
}
