package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// readSmall reads a file of a few lines, without the poller of os.File.
func readSmall(name string) (string, error) {
	fd, err := open(name, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(fd) }()
	return readFD(fd, name)
}

func readFD(fd int, name string) (string, error) {
	var buffer [4096]byte
	for {
		n, err := unix.Pread(fd, buffer[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return "", &fs.PathError{Op: "read", Path: name, Err: err}
		}
		return string(buffer[:n]), nil
	}
}

// put writes value to a control file, in one write.
func put(name, value string) error {
	fd, err := open(name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // the kernel takes a value at the write
	return putFD(fd, name, value)
}

func putFD(fd int, name, value string) error {
	for {
		_, err := unix.Write(fd, []byte(value))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return &fs.PathError{Op: "write " + value + " to", Path: name, Err: err}
		}
		return nil
	}
}

func open(name string, flags int) (int, error) {
	for {
		fd, err := unix.Open(name, flags|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return -1, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return fd, nil
	}
}

// field is the number behind key in a file of lines "key number".
func field(name, key string) (int64, error) {
	text, err := readSmall(name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == key {
			return number(name, words[1])
		}
	}
	return 0, fmt.Errorf("%s has no %s: %w", name, key, errors.ErrUnsupported)
}

func number(name, text string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// makeGroup makes one directory; one that is there already will do.
func makeGroup(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// removeGroup removes an empty group and what a program may have made in it. One
// that does not exist is no error.
func removeGroup(dir string) error {
	for _, sub := range subgroups(dir) {
		if err := removeGroup(sub); err != nil {
			return err
		}
	}
	// Busy for a moment after its last process has gone.
	return until(patience, func() (bool, error) {
		err := unix.Rmdir(dir)
		switch {
		case err == nil, errors.Is(err, unix.ENOENT):
			return true, nil
		case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EINTR):
			return false, nil
		}
		return false, &fs.PathError{Op: "rmdir", Path: dir, Err: err}
	})
}

// subgroups are the groups in dir; none if it cannot be read.
func subgroups(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var subs []string
	for _, e := range entries {
		if e.IsDir() {
			subs = append(subs, filepath.Join(dir, e.Name()))
		}
	}
	return subs
}
