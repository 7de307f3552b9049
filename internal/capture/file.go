package capture

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openFlags: O_APPEND because somebody else may truncate the file meanwhile; the
// next write must then not leave a hole.
const openFlags = unix.O_WRONLY | unix.O_APPEND | unix.O_CLOEXEC | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW

// openNamed creates the file name and whatever directories it needs. A regular
// file of that name is replaced, anything else refused.
func openNamed(name string) (*os.File, error) {
	file, err := createNew(name)
	if errors.Is(err, unix.ENOENT) {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return nil, fmt.Errorf("create directory: %w", err)
		}
		file, err = createNew(name)
	}
	// A bounded number of times: another round may be replacing the same name.
	for try := 0; errors.Is(err, unix.EEXIST) && try < 10; try++ {
		if err := removeRegular(name); err != nil {
			return nil, err
		}
		file, err = createNew(name)
	}
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	return file, nil
}

// createNew never opens what is there: not a link planted by a former round, not
// a file that another round or an escaped process still writes to.
func createNew(name string) (*os.File, error) {
	fd := -1
	err := retryInterrupted(func() (err error) {
		fd, err = unix.Open(name, openFlags, 0o666)
		return os.NewSyscallError("open", err)
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// removeRegular makes way for a new file, but never removes a link or a device.
func removeRegular(name string) error {
	info, err := os.Lstat(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("exists and is not a regular file (%s): %w", info.Mode(), unix.EEXIST)
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
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
