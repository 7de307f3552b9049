// Package workdir fills the private directory of a round with a copy of the program, and
// keeps that from one round to the next if the program is small, because a file system
// with a journal takes longer to make and remove one for each than to start a program.
//
// Most programs leave their files alone. Then a look at each tells: whatever changes a
// directory, be it an entry of any kind, its owner, its rights or its attributes, or what
// a file holds, also changes the time of its last change, which nobody can set. This holds
// once that time is past: within one step of the clock two changes have the same time. So
// a directory is looked at thoroughly, and a file read, until it has been found unchanged
// for longer than that.
package workdir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Dir is at most one directory. The zero value holds none. It is for one goroutine at
// a time.
type Dir struct {
	path    string // "" for none
	shows   *Tree  // the program whose copy it holds, nil for none
	then    unix.Stat_t
	files   []kept    // of the copy, in the order of the program's
	since   time.Time // when then was seen first
	settled bool      // whatever has changed the directory later has changed its times
}

// kept is one entry of a copy.
type kept struct {
	path    string
	then    unix.Stat_t
	since   time.Time
	settled bool
}

// Hold begins to keep a directory that has just been made, empty or with a copy of a
// small program.
func (d *Dir) Hold(path string, shows *Tree) error {
	*d = Dir{}
	err := unix.Lstat(path, &d.then)
	if shows != nil {
		d.files = make([]kept, len(shows.entries))
	}
	now := time.Now()
	for i := range d.files {
		if err != nil {
			break
		}
		k := &d.files[i]
		k.path, k.since = filepath.Join(path, shows.entries[i].name), now
		err = unix.Lstat(k.path, &k.then)
	}
	if err != nil {
		return fmt.Errorf("look at the private directory: %w", os.NewSyscallError("lstat", err))
	}
	d.path, d.shows, d.since = path, shows, now
	return nil
}

// Path is the directory, "" for none.
func (d *Dir) Path() string { return d.path }

// Shows reports whether the directory holds a copy of that program, nil for an empty one.
func (d *Dir) Shows(t *Tree) bool { return d.path != "" && d.shows == t }

// Forget keeps it no longer, and leaves it as it is.
func (d *Dir) Forget() { *d = Dir{} }

// Untouched reports whether certainly nothing was put into the directory itself, for the
// price of one system call.
func (d *Dir) Untouched() bool {
	// By its name, so that another directory in its place is seen too.
	return d.settled && unchanged(d.path, &d.then)
}

// Clean reports whether the directory is as it was made: with the owner and rights it
// had then, with what it held then and nothing else, and without attributes that the
// files of another round would inherit.
func (d *Dir) Clean() bool { return d.path != "" && d.intact() && (d.Untouched() || d.look(nil)) }

// Restore removes what was added to the directory, by remove, and reports whether it is
// clean then. What was changed otherwise is not mended. Where it was found Untouched since
// the last process ended that could add something, it is not looked at again.
func (d *Dir) Restore(untouched bool, remove func(dir *os.File, name string) error) bool {
	return d.path != "" && d.intact() && (untouched || d.Untouched() || d.look(remove))
}

// intact reports whether the copy is as it was made.
func (d *Dir) intact() bool {
	for i := range d.files {
		k := &d.files[i]
		if !unchanged(k.path, &k.then) {
			return false
		}
		if k.settled {
			continue
		}
		tells := past(&k.then, k.since)
		if !d.holds(k, &d.shows.entries[i]) {
			return false
		}
		k.settled = tells
	}
	return true
}

// holds looks at what is in a file or directory.
func (d *Dir) holds(k *kept, e *entry) bool {
	if e.mode&fs.ModeSymlink != 0 {
		return true // it leads where it did
	}
	file, err := open(k.path, &k.then, 0)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // it is only read
	if !e.mode.IsDir() {
		text, err := io.ReadAll(io.LimitReader(file, int64(len(e.text))+1))
		return err == nil && bytes.Equal(text, e.text)
	}
	left := d.names(e.name)
	names, err := file.Readdirnames(-1)
	for _, name := range names {
		if !left[name] {
			return false
		}
		delete(left, name)
	}
	return err == nil && len(left) == 0
}

// names are what a directory of the program holds, "" being the top.
func (d *Dir) names(dir string) map[string]bool {
	names := map[string]bool{}
	if d.shows == nil {
		return names
	}
	for i := range d.shows.entries {
		above, name := filepath.Split(d.shows.entries[i].name)
		if strings.TrimSuffix(above, "/") == dir {
			names[name] = true
		}
	}
	return names
}

// look is Clean by looking at the directory itself, and Restore if there is a remove.
func (d *Dir) look(remove func(dir *os.File, name string) error) bool {
	tells := past(&d.then, d.since)
	dir, err := open(d.path, &d.then, unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	defer func() { _ = dir.Close() }() // nothing is written through it
	left := d.names("")
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return false
	}
	for _, name := range names {
		if left[name] {
			delete(left, name)
		} else if remove == nil || remove(dir, name) != nil {
			return false
		}
	}
	var now unix.Stat_t
	if len(left) > 0 || unix.Fstat(int(dir.Fd()), &now) != nil {
		return false
	}
	if same(&now, &d.then) {
		d.settled = tells
	} else {
		d.then, d.since, d.settled = now, time.Now(), false
	}
	return true
}

// open opens what is kept if it is the same still, with its owner and rights, and has no
// attributes of its user's.
func open(path string, then *unix.Stat_t, flags int) (*os.File, error) {
	fd, err := unix.Open(path, flags|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err //nolint:wrapcheck // only whether it is clean is asked
	}
	file := os.NewFile(uintptr(fd), path)
	var now unix.Stat_t
	if unix.Fstat(fd, &now) != nil || now.Dev != then.Dev || now.Ino != then.Ino ||
		now.Mode != then.Mode || now.Uid != then.Uid || now.Gid != then.Gid || !plain(fd) {
		_ = file.Close()
		return nil, errChanged
	}
	return file, nil
}

var errChanged = errors.New("it has changed")

// Steps of the clocks of file systems, and more: where microseconds are kept, times
// advance with the ticks of the kernel, at least 100 a second. Old ones keep seconds,
// or every other.
const (
	fineStep   = 50 * time.Millisecond
	coarseStep = 3 * time.Second
)

// past reports whether a change from now on has another time than the one of then, which
// was seen first at since. Both clocks say so: that of the kernel's files may stand still for
// longer than its step where the host's processors are busy, and a file server has another one.
func past(then *unix.Stat_t, since time.Time) bool {
	step := int64(coarseStep)
	if then.Ctim.Nsec%1e6 != 0 {
		step = int64(fineStep)
	}
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) != nil {
		return false
	}
	return int64(time.Since(since)) >= step && now.Nano()-then.Ctim.Nano() >= step
}

// unchanged reports whether nothing is known to have changed since then.
func unchanged(path string, then *unix.Stat_t) bool {
	var now unix.Stat_t
	return unix.Lstat(path, &now) == nil && same(&now, then)
}

// same reports whether nothing is known to have changed between two looks.
func same(a, b *unix.Stat_t) bool {
	return a.Ctim == b.Ctim && a.Mtim == b.Mtim && a.Dev == b.Dev && a.Ino == b.Ino && a.Nlink == b.Nlink &&
		a.Mode == b.Mode && a.Uid == b.Uid && a.Gid == b.Gid && a.Size == b.Size
}

// plain reports whether a file has no attributes of its user's, such as access
// control lists.
func plain(fd int) bool {
	names := make([]byte, 1024)
	n, err := unix.Flistxattr(fd, names)
	if err != nil {
		return errors.Is(err, unix.ENOTSUP)
	}
	list := string(names[:n])
	return !strings.Contains(list, "user.") && !strings.Contains(list, "system.")
}
