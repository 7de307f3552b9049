package capture

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// openFlags: O_APPEND because somebody else may truncate the file meanwhile; the
// next write must then not leave a hole.
const openFlags = unix.O_WRONLY | unix.O_APPEND | unix.O_CLOEXEC | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW

// openNamed creates the file name and whatever directories it needs. A regular
// file of that name is replaced, anything else refused.
func openNamed(name string) (*os.File, error) {
	dir, err := openDir(filepath.Dir(name))
	if err != nil {
		return nil, fmt.Errorf("open directory: %w", err)
	}
	defer func() { _ = unix.Close(dir) }()
	file, err := createNew(dir, name)
	// A bounded number of times: another round may be replacing the same name.
	for try := 0; errors.Is(err, unix.EEXIST) && try < 10; try++ {
		if err := removeRegular(dir, filepath.Base(name)); err != nil {
			return nil, err
		}
		file, err = createNew(dir, name)
	}
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	return file, nil
}

// maxLinks is how many links may stand on the way to a directory, as in the kernel.
const maxLinks = 40

// openDir opens a directory by its path, and makes what is missing of it. For root it
// follows links of root only: who can write to a directory on the way, such as the
// user that programs run as, could lead it anywhere.
func openDir(path string) (int, error) {
	fd, err := openStep(unix.AT_FDCWD, start(path))
	for links := 0; err == nil && path != ""; {
		var part string
		if part, path, _ = strings.Cut(path, "/"); part == "" || part == "." {
			continue
		}
		above := fd
		if fd, err = openStep(above, part); err != nil {
			_ = unix.Close(above)
			return -1, err
		}
		var target string
		if target, err = followed(fd); err == nil && target == "" {
			_ = unix.Close(above)
			continue
		}
		_ = unix.Close(fd)
		fd, path = above, target+"/"+path
		if links++; err == nil && links > maxLinks {
			err = unix.ELOOP
		}
		if err != nil {
			err = fmt.Errorf("'%s': %w", part, err)
		} else if filepath.IsAbs(target) {
			_ = unix.Close(fd)
			fd, err = openStep(unix.AT_FDCWD, "/")
		}
	}
	if err != nil && fd >= 0 {
		_ = unix.Close(fd)
	}
	return fd, err
}

func start(path string) string {
	if filepath.IsAbs(path) {
		return "/"
	}
	return "."
}

// openStep opens an entry of a directory. If there is no such entry it makes a directory.
func openStep(dir int, name string) (fd int, err error) {
	open := func() error {
		return retryInterrupted(func() (err error) {
			fd, err = unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			return os.NewSyscallError("open", err)
		})
	}
	err = open()
	if errors.Is(err, unix.ENOENT) {
		if err := unix.Mkdirat(dir, name, 0o777); err != nil && !errors.Is(err, unix.EEXIST) {
			return -1, fmt.Errorf("create directory '%s': %w", name, err)
		}
		err = open()
	}
	if err != nil {
		return -1, fmt.Errorf("'%s': %w", name, err)
	}
	return fd, nil
}

// followed is where a link leads; "" for a directory.
func followed(fd int) (target string, err error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return "", os.NewSyscallError("stat", err)
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "", nil
	case unix.S_IFLNK:
	default:
		return "", unix.ENOTDIR
	}
	if os.Geteuid() == 0 && stat.Uid != 0 {
		return "", fmt.Errorf("%w of user %d, which root does not follow: name the directory itself, or make the link as root", errLink, stat.Uid)
	}
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", text)
	if err != nil {
		return "", os.NewSyscallError("readlink", err)
	}
	return string(text[:n]), nil
}

var errLink = errors.New("a link")

// createNew never opens what is there: not a link planted by a former round, not
// a file that another round or an escaped process still writes to.
func createNew(dir int, name string) (*os.File, error) {
	fd := -1
	err := retryInterrupted(func() (err error) {
		fd, err = unix.Openat(dir, filepath.Base(name), openFlags, 0o666)
		return os.NewSyscallError("open", err)
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// removeRegular makes way for a new file, but never removes a link or a device.
func removeRegular(dir int, base string) error {
	var stat unix.Stat_t
	err := unix.Fstatat(dir, base, &stat, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("exists and is not a regular file: %w", unix.EEXIST)
	}
	if err := unix.Unlinkat(dir, base, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("replace: %w", err)
	}
	return nil
}

// retryInterrupted repeats a system call that a signal interrupted; the Go
// runtime sends itself signals to preempt goroutines.
func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
