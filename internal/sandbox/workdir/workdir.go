// Package workdir keeps an empty private directory from one round to the next,
// because a file system with a journal takes longer to make and remove one for
// each than to start a program.
//
// Most programs leave their directory alone. Then one look tells: whatever changes a
// directory, be it an entry of any kind, its owner, its rights or its attributes, also
// changes the time of its last change, which nobody can set. This holds once that time
// is past: within one step of the clock two changes have the same time. So a directory
// is looked at thoroughly until it has been found unchanged for longer than that.
package workdir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Dir is at most one directory. The zero value holds none. It is for one goroutine at
// a time.
type Dir struct {
	path    string // "" for none
	then    unix.Stat_t
	since   time.Time // when then was seen first
	settled bool      // whatever has changed the directory later has changed its times
}

// Hold begins to keep a directory that has just been made.
func (d *Dir) Hold(path string) error {
	*d = Dir{}
	if err := unix.Lstat(path, &d.then); err != nil {
		return fmt.Errorf("look at the private directory: %w", os.NewSyscallError("lstat", err))
	}
	d.path, d.since = path, time.Now()
	return nil
}

// Path is the directory, "" for none.
func (d *Dir) Path() string { return d.path }

// Forget keeps it no longer, and leaves it as it is.
func (d *Dir) Forget() { *d = Dir{} }

// Untouched reports whether certainly nobody has changed the directory, for the price
// of one system call.
func (d *Dir) Untouched() bool {
	if !d.settled {
		return false
	}
	var now unix.Stat_t
	// By its name, so that another directory in its place is seen too.
	return unix.Lstat(d.path, &now) == nil && same(&now, &d.then)
}

// Clean reports whether the directory is as it was made: with the owner and rights it
// had then, empty, and without attributes that the files of another round would inherit.
func (d *Dir) Clean() bool { return d.path != "" && (d.Untouched() || d.look()) }

// Remove removes the directory. That it is gone already is no error.
func (d *Dir) Remove() error {
	path := d.path
	d.Forget()
	if path == "" {
		return nil
	}
	if err := unix.Rmdir(path); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove the private directory: %w", os.NewSyscallError("rmdir", err))
	}
	return nil
}

// look is Clean by looking.
func (d *Dir) look() bool {
	fd, err := unix.Open(d.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	file := os.NewFile(uintptr(fd), d.path)
	defer func() { _ = file.Close() }() // nothing is written through it
	past := d.past()
	now, then := unix.Stat_t{}, &d.then
	if unix.Fstat(fd, &now) != nil || now.Dev != then.Dev || now.Ino != then.Ino ||
		now.Mode != then.Mode || now.Uid != then.Uid || now.Gid != then.Gid || !plain(fd) {
		return false
	}
	if _, err = file.Readdirnames(1); !errors.Is(err, io.EOF) {
		return false
	}
	if same(&now, then) {
		d.settled = past
	} else {
		d.then, d.since, d.settled = now, time.Now(), false
	}
	return true
}

// Steps of the clocks of file systems, and more: where microseconds are kept, times
// advance with the ticks of the kernel, at least 100 a second. Old ones keep seconds,
// or every other.
const (
	fineStep   = 50 * time.Millisecond
	coarseStep = 3 * time.Second
)

// past reports whether a change from now on has another time than the last one that is
// known. Both clocks say so: that of the kernel's files may stand still for longer than
// its step where the host's processors are busy, and a file server has another one.
func (d *Dir) past() bool {
	step := int64(coarseStep)
	if d.then.Ctim.Nsec%1e6 != 0 {
		step = int64(fineStep)
	}
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) != nil {
		return false
	}
	return int64(time.Since(d.since)) >= step && now.Nano()-d.then.Ctim.Nano() >= step
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
