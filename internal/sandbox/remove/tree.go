// Package remove removes directory trees that programs could write to.
//
// A program may leave a mount in its tree: a bind mount of /srv below a private
// directory is /srv. So a tree is walked by descriptors, no link is followed, and no
// directory is entered that belongs to another mount than the one above it. Devices
// say nothing about that: a bind mount has the device of what it shows.
//
// [Mounts] unmounts what a program has left mounted in a tree. What cannot be unmounted
// keeps the tree where it is, with a [MountedError].
package remove

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxDepth is how many directories are open at a time. What lies deeper is moved up
// first, so that no depth exhausts the descriptors of this process.
const maxDepth = 64

// Tree removes what path names and all below it, also where directories are read-only.
// Nothing there is no error. The directory above path is trusted: only path itself is
// not followed if it is a link. The error is a *MountedError if something is mounted
// at path or below it, which is left as it is.
func Tree(path string) error {
	dir, err := os.OpenFile(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // nothing is written through it
	return In(dir, filepath.Base(path))
}

// In is Tree for what has that name in the open directory dir.
func In(dir *os.File, name string) error {
	w := walk{ways: ways}
	return w.remove(int(dir.Fd()), name, filepath.Join(dir.Name(), name), 0)
}

// walk removes one tree.
type walk struct {
	ways  []way
	top   int // the directory at the top, where what lies too deep is moved to
	moved int
}

// remove removes one entry of the directory parent. path is for errors only.
func (w *walk) remove(parent int, name, path string, depth int) error {
	unlinked := unlink(parent, name, 0)
	if errors.Is(unlinked, unix.EACCES) && depth > 0 && unix.Fchmod(parent, 0o700) == nil {
		unlinked = unlink(parent, name, 0)
	}
	if unlinked == nil {
		return nil
	}
	switch err := unlink(parent, name, unix.AT_REMOVEDIR); {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOTDIR): // so why it could not be unlinked is what counts
		return w.explain(parent, name, path, unlinked)
	case !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST):
		return w.explain(parent, name, path, err)
	}
	if depth == maxDepth {
		return w.lift(parent, name, path)
	}
	if err := w.empty(parent, name, path, depth); err != nil {
		return err
	}
	if err := unlink(parent, name, unix.AT_REMOVEDIR); err != nil {
		return w.explain(parent, name, path, err)
	}
	return nil
}

// empty removes all entries of a directory.
func (w *walk) empty(parent int, name, path string, depth int) error {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY
	fd, err := w.open(parent, name, flags)
	if errors.Is(err, unix.EACCES) && w.loosen(parent, name) == nil {
		fd, err = w.open(parent, name, flags)
	}
	if err != nil {
		return w.explain(parent, name, path, err)
	}
	dir := os.NewFile(uintptr(fd), path)
	defer func() { _ = dir.Close() }()
	if depth == 0 {
		w.top = fd
	}
	for {
		removed, err := w.pass(dir, depth)
		if removed == 0 || errors.As(err, new(*MountedError)) {
			return err
		}
		// An entry may be missed while others go, and come from below (lift).
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}

// pass removes what a reading of the directory finds. It goes on after an error, but
// not after a mount.
func (w *walk) pass(dir *os.File, depth int) (removed int, failed error) {
	for {
		names, err := dir.Readdirnames(1000)
		for _, name := range names {
			path := filepath.Join(dir.Name(), name)
			err := w.remove(int(dir.Fd()), name, path, depth+1)
			switch {
			case err == nil:
				removed++
			case errors.As(err, new(*MountedError)):
				return removed, err
			case failed == nil:
				failed = err
			}
		}
		if errors.Is(err, io.EOF) {
			return removed, failed
		}
		if err != nil {
			return 0, err
		}
	}
}

// lift moves a directory to the top, which is read again.
func (w *walk) lift(parent int, name, path string) error {
	w.moved++
	to := fmt.Sprintf(".tdf-deep-%d-%d", os.Getpid(), w.moved)
	rename := func() error {
		return retry(func() error { return unix.Renameat2(parent, name, w.top, to, unix.RENAME_NOREPLACE) })
	}
	err := rename()
	if errors.Is(err, unix.EACCES) && w.loosen(parent, name) == nil {
		err = rename()
	}
	if err != nil {
		return w.explain(parent, name, path, err)
	}
	return nil
}

// loosen gives the owner of a directory all rights to it.
func (w *walk) loosen(parent int, name string) error {
	fd, err := w.open(parent, name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Chmod(descriptor(fd), 0o700) //nolint:wrapcheck // only whether it worked is asked
}

// descriptor is the path of what fd stands for.
func descriptor(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// explain makes the error of a system call about an entry; being busy may mean that
// something is mounted there.
func (w *walk) explain(parent int, name, path string, err error) error {
	reason := err
	if errors.Is(err, unix.EBUSY) {
		var fd int
		if fd, reason = w.open(parent, name, unix.O_PATH); reason == nil {
			_ = unix.Close(fd)
		}
	}
	switch {
	case errors.Is(reason, errCrossing):
		return &MountedError{Path: path}
	case errors.Is(reason, errUnknown):
		return &MountedError{Path: path, Err: errUnknown}
	}
	return &os.PathError{Op: "remove", Path: path, Err: err}
}

// Why a directory is not entered.
var (
	errCrossing = errors.New("another mount")
	errUnknown  = errors.New("whether it is a mount cannot be known: neither openat2, nor the mount in statx or /proc")
	errNoWay    = errors.New("not known to this system")
)

// way opens an entry of the directory parent, not through a link, unless another mount
// than that of parent is there. The error errNoWay sends the caller to the next way.
type way func(parent int, name string, flags int) (fd int, err error)

// ways are for Linux from 5.6, from 5.8 where a filter forbids the first, and before.
var ways = []way{openBeneath, compared(statMount), compared(infoMount)}

func (w *walk) open(parent int, name string, flags int) (int, error) {
	for _, open := range w.ways {
		if fd, err := open(parent, name, flags); !errors.Is(err, errNoWay) {
			return fd, err
		}
	}
	return -1, errUnknown
}

// openBeneath lets the kernel refuse another mount, before it is touched.
func openBeneath(parent int, name string, flags int) (fd int, err error) {
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_NOFOLLOW | unix.O_CLOEXEC),
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS,
	}
	err = retry(func() (err error) {
		fd, err = unix.Openat2(parent, name, &how)
		return err //nolint:wrapcheck // explained by the caller
	})
	switch {
	case err == nil:
		return fd, nil
	case errors.Is(err, unix.EXDEV):
		return -1, errCrossing
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // an old kernel, or a filter
		return -1, errNoWay
	}
	return -1, err
}

// compared opens first and looks then: what is done later is relative to what was
// opened, whatever is mounted in its place meanwhile.
func compared(mount func(fd int) (string, error)) way {
	return func(parent int, name string, flags int) (int, error) {
		above, err := mount(parent)
		if err != nil {
			return -1, err
		}
		fd, err := openat(parent, name, flags)
		if err != nil {
			return -1, err
		}
		below, err := mount(fd)
		if err == nil && below != above {
			err = errCrossing
		}
		if err != nil {
			_ = unix.Close(fd)
			return -1, err
		}
		return fd, nil
	}
}

// statMount is the id of a descriptor's mount by statx.
func statMount(fd int) (string, error) {
	var stat unix.Statx_t
	err := retry(func() error { return unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &stat) })
	if err != nil || stat.Mask&unix.STATX_MNT_ID == 0 {
		return "", errNoWay
	}
	return strconv.FormatUint(stat.Mnt_id, 10), nil
}

// infoMount is the same as /proc says it.
func infoMount(fd int) (string, error) {
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return "", errNoWay
	}
	for line := range bytes.Lines(text) {
		if id, ok := bytes.CutPrefix(line, []byte("mnt_id:")); ok {
			return string(bytes.TrimSpace(id)), nil
		}
	}
	return "", errNoWay
}

// openat opens an entry, not through a link.
func openat(parent int, name string, flags int) (fd int, err error) {
	err = retry(func() (err error) {
		fd, err = unix.Openat(parent, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err //nolint:wrapcheck // explained by the caller
	})
	return fd, err
}

// unlink removes a file or, by its flags, an empty directory. That it is gone is no error.
func unlink(parent int, name string, flags int) error {
	err := retry(func() error { return unix.Unlinkat(parent, name, flags) })
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// MountedError says that a tree was left, or a part of it, because something is
// mounted there or because that cannot be known.
type MountedError struct {
	// Path is where.
	Path string
	// Err is why it was not unmounted or could not be told; nil for a mount that is not
	// the caller's.
	Err error
}

// Error names path and remedy.
func (e *MountedError) Error() string {
	text := "something is mounted at '" + e.Path + "', so what holds it is not removed: unmount it, then remove the rest"
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	return text
}

// Unwrap returns Err.
func (e *MountedError) Unwrap() error { return e.Err }
