package control

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// maxRead is how much of the end of the file is looked at.
const maxRead = 64 << 10

// stamp tells one state of the file from another.
type stamp struct {
	device, inode    uint64
	size             int64
	modified, change unix.Timespec
}

func stampOf(s *unix.Stat_t) stamp {
	return stamp{device: s.Dev, inode: s.Ino, size: s.Size, modified: s.Mtim, change: s.Ctim}
}

// read returns the end of the file, from the beginning of a line on, if it has
// changed since it was read last.
func (r *Reader) read() (text string, fresh bool, err error) {
	var stat unix.Stat_t
	err = retry(func() error { return unix.Lstat(r.Path, &stat) })
	switch {
	case errors.Is(err, unix.ENOENT):
		return "", false, nil
	case err != nil:
		return "", false, &os.PathError{Op: "stat", Path: r.Path, Err: err}
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return "", false, fmt.Errorf("%w: %s", ErrRefused, r.Path)
	case stampOf(&stat) == r.seen:
		return "", false, nil
	}
	return r.reread()
}

// reread opens the file, looking again at what it is: it may be another by now.
func (r *Reader) reread() (text string, fresh bool, err error) {
	fd, stat, err := r.open()
	if err != nil || fd < 0 {
		return "", false, err
	}
	defer func() { _ = unix.Close(fd) }()
	text, err = r.tail(fd, stat.Size)
	if err == nil {
		r.seen = stampOf(stat) // from before reading: what comes meanwhile is seen next time
	}
	return text, err == nil, err
}

// open opens the file if it is there and a plain one; fd is negative if it is not
// there.
func (r *Reader) open() (fd int, stat *unix.Stat_t, err error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd = -1
	open := func() error {
		return retry(func() (err error) {
			fd, err = unix.Open(r.Path, flags, 0)
			return err //nolint:wrapcheck // wrapped below
		})
	}
	if r.As == nil {
		err = open()
	} else if err = unix.Access(r.Path, unix.F_OK); err == nil { // taking its rights is dear, and most programs never write the file
		err = r.As(open)
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return -1, nil, nil
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO):
		return -1, nil, fmt.Errorf("%w: %s", ErrRefused, r.Path)
	case err != nil:
		return -1, nil, &os.PathError{Op: "open", Path: r.Path, Err: err}
	}
	stat = new(unix.Stat_t)
	switch err = retry(func() error { return unix.Fstat(fd, stat) }); {
	case err != nil:
		err = &os.PathError{Op: "stat", Path: r.Path, Err: err}
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		err = fmt.Errorf("%w: %s", ErrRefused, r.Path)
	default:
		return fd, stat, nil
	}
	_ = unix.Close(fd)
	return -1, nil, err
}

// tail reads the last maxRead bytes, without a line that began before them.
func (r *Reader) tail(fd int, size int64) (string, error) {
	offset := max(size-maxRead, 0)
	buffer := make([]byte, size-offset)
	done := 0
	for done < len(buffer) {
		n, err := unix.Pread(fd, buffer[done:], offset+int64(done))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return "", &os.PathError{Op: "read", Path: r.Path, Err: err}
		}
		if n == 0 {
			break // truncated meanwhile
		}
		done += n
	}
	buffer = buffer[:done]
	if offset > 0 {
		buffer = buffer[bytes.IndexByte(buffer, '\n')+1:]
	}
	return string(buffer), nil
}

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
