package workdir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/base/disk"
)

// A program is small if it has no more than this. Then its files are kept in memory, and
// what a round has left of its copy is looked through after each round.
const (
	smallEntries = 16
	smallBytes   = 1 << 20
)

// Tree is what the directory of a small program held when it was read.
type Tree struct {
	dir     string
	stat    unix.Stat_t
	entries []entry // a directory before what is in it
	since   time.Time
	settled bool // whatever has changed since it was read last shows in the times
}

type entry struct {
	name string // below the directory
	mode fs.FileMode
	stat unix.Stat_t
	text []byte // of a file, or where a link leads
}

// errLarge means that a program is not small.
var errLarge = errors.New("not a small program")

// Read reads a program; nil if it is not small. It returns last, which may be nil, if the
// program is the same as then.
func Read(dir string, last *Tree) (*Tree, error) {
	t := &Tree{dir: dir, since: time.Now()}
	tells := last != nil && past(last.newest(), last.since)
	if err := unix.Lstat(dir, &t.stat); err != nil {
		return nil, &os.PathError{Op: "lstat", Path: dir, Err: err}
	}
	left := int64(smallBytes)
	err := each(dir, func(e *entry) error {
		left -= e.stat.Size
		if left < 0 || len(t.entries) == smallEntries {
			return errLarge
		}
		if err := e.read(dir); err != nil {
			return err
		}
		t.entries = append(t.entries, *e)
		return nil
	})
	if errors.Is(err, errLarge) {
		return nil, nil //nolint:nilnil // none that is kept
	}
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	if last != nil && t.same(last) {
		last.settled = tells
		return last, nil
	}
	return t, nil
}

func (t *Tree) same(o *Tree) bool {
	return t.dir == o.dir && same(&t.stat, &o.stat) && slices.EqualFunc(t.entries, o.entries, func(a, b entry) bool {
		return a.name == b.name && same(&a.stat, &b.stat) && bytes.Equal(a.text, b.text)
	})
}

// each calls f for what is in a program's directory: files, directories and links. What
// else there may be, such as a socket, cannot be copied.
func each(dir string, f func(e *entry) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { //nolint:wrapcheck // as f has it
		switch {
		case err != nil:
			return err
		case path == dir:
			return nil
		case filepath.Dir(path) == dir && strings.HasPrefix(d.Name(), disk.Reserved):
			return skip(d)
		case d.Type()&^(fs.ModeDir|fs.ModeSymlink) != 0:
			return nil
		}
		e := &entry{name: path[len(dir)+1:], mode: d.Type()}
		if err := unix.Lstat(path, &e.stat); err != nil {
			return &os.PathError{Op: "lstat", Path: path, Err: err}
		}
		e.mode |= fs.FileMode(e.stat.Mode & 0o777)
		return f(e)
	})
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// read takes what a file holds, or where a link leads.
func (e *entry) read(dir string) (err error) {
	path := filepath.Join(dir, e.name)
	switch {
	case e.mode.IsRegular():
		e.text, err = os.ReadFile(path)
	case e.mode&fs.ModeSymlink != 0:
		var target string
		target, err = os.Readlink(path)
		e.text = []byte(target)
	}
	if int64(len(e.text)) > smallBytes { // it has grown meanwhile
		return errLarge
	}
	return err
}

// newest is the last time that something of the program changed.
func (t *Tree) newest() *unix.Stat_t {
	newest := &t.stat
	for i := range t.entries {
		if now := &t.entries[i].stat; now.Ctim.Nano() > newest.Ctim.Nano() {
			newest = now
		}
	}
	return newest
}

// Current reports whether the directory is certainly as it was read.
func (t *Tree) Current() bool {
	if !t.settled || !unchanged(t.dir, &t.stat) {
		return false
	}
	for i := range t.entries {
		if e := &t.entries[i]; !unchanged(filepath.Join(t.dir, e.name), &e.stat) {
			return false
		}
	}
	return true
}

// Fill writes a copy of a small program into an empty directory.
func (t *Tree) Fill(dir string) error {
	for i := range t.entries {
		e := &t.entries[i]
		file, err := e.create(dir)
		if file != nil {
			_, err = file.Write(e.text)
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			return fmt.Errorf("copy the program: %w", err)
		}
	}
	return nil
}

// Copy writes a copy of any program into an empty directory. Where the file system can,
// both share their blocks until one of them changes.
func Copy(ctx context.Context, from, dir string) error {
	err := each(from, func(e *entry) error {
		if e.mode&fs.ModeSymlink != 0 {
			if err := e.read(from); err != nil {
				return err
			}
		}
		file, err := e.create(dir)
		if file == nil {
			return err
		}
		return errors.Join(pour(ctx, file, filepath.Join(from, e.name)), file.Close())
	})
	if err != nil {
		return fmt.Errorf("copy the program: %w", err)
	}
	return nil
}

// create makes the entry in dir, and returns a file to write what it holds. Its owner may
// change all of it, whatever the original allows.
func (e *entry) create(dir string) (*os.File, error) {
	path := filepath.Join(dir, e.name)
	switch {
	case e.mode.IsDir():
		return nil, os.Mkdir(path, e.mode.Perm()|0o700)
	case e.mode&fs.ModeSymlink != 0:
		return nil, os.Symlink(string(e.text), path)
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, e.mode.Perm()|0o600)
}

// pour copies a file until ctx is done. It is the kernel that copies.
func pour(ctx context.Context, to *os.File, path string) error {
	from, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it is only read
	const most = 64 << 20
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if _, err := io.CopyN(to, from, most); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
