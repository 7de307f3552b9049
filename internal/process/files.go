package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openFlags apply to every output file. O_APPEND because a program may truncate
// its stdout behind our back: the next write must then not leave a hole.
const openFlags = unix.O_RDWR | unix.O_APPEND | unix.O_CLOEXEC

// stdio holds the program's three standard files as raw descriptors: os.File
// would cost two calls into the poller for each, in vain.
type stdio [3]int

func openStdio(s *Spec) (stdio, error) {
	files := stdio{-1, -1, -1}
	var err error
	if files[0], err = open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return files, fmt.Errorf("open /dev/null: %w", err)
	}
	if files[1], err = openOutput(s.Stdout, s.TempDir); err == nil {
		files[2], err = openOutput(s.Stderr, s.TempDir)
	}
	if err != nil {
		files.close()
	}
	return files, err
}

func (f *stdio) close() {
	for _, fd := range f {
		if fd >= 0 {
			// The bytes are read back already, so a late write error is not lost.
			_ = unix.Close(fd)
		}
	}
}

func openOutput(name, tempDir string) (int, error) {
	if name != "" {
		return openNamed(name)
	}
	if tempDir == "" {
		tempDir = os.TempDir()
	}
	return openTemp(tempDir)
}

// openNamed creates the file name and whatever directories it needs.
func openNamed(name string) (int, error) {
	fd, err := createNew(name)
	if errors.Is(err, unix.ENOENT) {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return -1, fmt.Errorf("create directory: %w", err)
		}
		fd, err = createNew(name)
	}
	// A bounded number of times: another round may be replacing the same name.
	for try := 0; errors.Is(err, unix.EEXIST) && try < 10; try++ {
		if err := removeRegular(name); err != nil {
			return -1, err
		}
		fd, err = createNew(name)
	}
	if err != nil {
		return -1, fmt.Errorf("create %s: %w", name, err)
	}
	return fd, nil
}

// createNew never opens what is there: not a link planted by a former round, not
// a file that another round or an escaped process still writes to.
func createNew(name string) (int, error) {
	return open(name, openFlags|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o666)
}

// removeRegular makes way for a new file, but never removes a link or a device.
func removeRegular(name string) error {
	info, err := os.Lstat(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s exists and is not a regular file (%s): %w", name, info.Mode(), unix.EEXIST)
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// openTemp opens a file in dir that has no name.
func openTemp(dir string) (int, error) {
	fd, err := open(dir, openFlags|unix.O_TMPFILE|unix.O_EXCL, 0o600)
	switch {
	case err == nil:
		return fd, nil
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR), errors.Is(err, unix.EINVAL):
		return openUnlinked(dir)
	}
	return -1, fmt.Errorf("temporary file in %s: %w", dir, err)
}

// openUnlinked is openTemp for file systems without O_TMPFILE.
func openUnlinked(dir string) (int, error) {
	file, err := os.CreateTemp(dir, "tdf-output-*")
	if err != nil {
		return -1, err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if err := file.Close(); err != nil {
		return -1, err
	}
	fd, err := open(file.Name(), openFlags|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, fmt.Errorf("temporary file in %s: %w", dir, err)
	}
	return fd, nil
}

func open(name string, flags int, mode uint32) (fd int, err error) {
	err = retryInterrupted(func() (err error) {
		fd, err = unix.Open(name, flags, mode)
		return os.NewSyscallError("open", err)
	})
	if err != nil {
		return -1, err
	}
	return fd, nil
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
