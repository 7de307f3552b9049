// Package workdir keeps an empty private directory from one round to the next,
// because a file system with a journal takes longer to make and remove one for
// each than to start a program. Renaming takes a fraction of that.
package workdir

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrChanged means that a kept directory is not as it was made any more.
var ErrChanged = errors.New("workdir: the directory has changed while it was kept")

// Made is what was known of a directory when it was made.
type Made struct{ stat unix.Stat_t }

// Look remembers a directory that has just been made.
func Look(dir string) (m Made, err error) {
	if err := unix.Lstat(dir, &m.stat); err != nil {
		return m, fmt.Errorf("look at the private directory: %w", os.NewSyscallError("lstat", err))
	}
	return m, nil
}

// Spare is at most one empty directory. The zero value holds none. It is for one
// goroutine at a time.
type Spare struct {
	path string // "" for none
	made Made
}

// Take hands the directory out under a name that begins with prefix and that
// nobody can know before. The error means that there was no directory to take.
func (s *Spare) Take(prefix string) (dir string, m Made, err error) {
	if s.path == "" {
		return "", m, os.ErrNotExist
	}
	from, to := s.path, prefix+unused()
	s.path = ""
	if err := rename(from, to); err != nil {
		_ = unix.Rmdir(from) // it may be gone: somebody cleans the directory of temporary files
		return "", m, err
	}
	if !s.made.holds(to) {
		return "", m, ErrChanged // it is left to the process that changed it
	}
	return to, s.made, nil
}

// Keep takes a directory of which nothing is in use any more, under a name that
// begins with prefix, if it is as it was made and none is held yet. Otherwise it
// stays where it is and Keep returns false.
func (s *Spare) Keep(dir, prefix string, m Made) bool {
	if s.path != "" || !m.holds(dir) {
		return false
	}
	to := prefix + unused()
	if rename(dir, to) != nil {
		return false
	}
	s.path, s.made = to, m
	return true
}

// Remove removes what is held. That it is gone already is no error.
func (s *Spare) Remove() error {
	path := s.path
	s.path = ""
	if path == "" {
		return nil
	}
	if err := unix.Rmdir(path); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove the spare private directory: %w", os.NewSyscallError("rmdir", err))
	}
	return nil
}

// rename never replaces what somebody else has put there.
func rename(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if err != nil {
		return fmt.Errorf("rename the private directory: %w", os.NewSyscallError("renameat2", err))
	}
	return nil
}

// unused is the end of a name that nobody can know before.
func unused() string { return fmt.Sprintf("%08x", rand.Uint32()) }

// holds reports whether a directory is the one that was made, with the owner and
// rights it had then, empty, and without attributes that the files of another
// round would inherit.
func (m *Made) holds(dir string) bool {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	file := os.NewFile(uintptr(fd), dir)
	defer func() { _ = file.Close() }() // nothing is written through it
	now, then := unix.Stat_t{}, &m.stat
	if unix.Fstat(fd, &now) != nil || now.Dev != then.Dev || now.Ino != then.Ino ||
		now.Mode != then.Mode || now.Uid != then.Uid || now.Gid != then.Gid || !plain(fd) {
		return false
	}
	_, err = file.Readdirnames(1)
	return errors.Is(err, io.EOF)
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
