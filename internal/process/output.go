package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Marker is the text that stands between head and tail of an output that was
// cut, for the given number of missing bytes. It is not counted in OutputLimit.
func Marker(missing int64) string {
	return "\n[tdf: " + strconv.FormatInt(missing, 10) + " bytes left out]\n"
}

// collect fills in the output fields of r. Both streams are read even if one fails.
func (r *Result) collect(s *Spec, files *stdio) error {
	var outErr, errErr error
	r.Stdout, r.StdoutBytes, outErr = readBack(files[1], s.OutputLimit)
	r.Stderr, r.StderrBytes, errErr = readBack(files[2], s.OutputLimit)
	r.StdoutTruncated = r.StdoutBytes > s.OutputLimit
	r.StderrTruncated = r.StderrBytes > s.OutputLimit
	if outErr == nil && errErr == nil {
		return nil
	}
	return errors.Join(outputError("stdout", s.Stdout, outErr), outputError("stderr", s.Stderr, errErr))
}

func outputError(stream, name string, err error) error {
	if err == nil {
		return nil
	}
	return &OutputError{Stream: stream, Name: name, Err: err}
}

// readBack returns at most limit bytes of the file and the marker, and its size.
func readBack(fd int, limit int64) ([]byte, int64, error) {
	var stat unix.Stat_t
	if err := retryInterrupted(func() error { return unix.Fstat(fd, &stat) }); err != nil {
		return nil, 0, fmt.Errorf("stat: %w", err)
	}
	data, err := excerpt(fd, stat.Size, limit)
	if err == nil {
		err = checkSpace(fd)
	}
	return data, stat.Size, err
}

// excerpt reads everything, or head and tail if that is more than limit.
func excerpt(fd int, size, limit int64) ([]byte, error) {
	switch {
	case size == 0:
		return nil, nil
	case size <= limit:
		data := make([]byte, size)
		n, err := readAt(fd, data, 0)
		return data[:n], err
	}
	marker := Marker(size - limit)
	tail := limit / 2
	head := limit - tail
	data := make([]byte, limit+int64(len(marker)))
	n, err := readAt(fd, data[:head], 0)
	if err != nil {
		return data[:n], err
	}
	n += copy(data[n:], marker)
	m, err := readAt(fd, data[n:int64(n)+tail], size-tail)
	return data[:n+m], err
}

// readAt fills b from offset on. It stops without an error at the end of the
// file, which may have moved: an escaped process can still truncate it.
func readAt(fd int, b []byte, offset int64) (int, error) {
	done := 0
	for done < len(b) {
		n, err := unix.Pread(fd, b[done:], offset+int64(done))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return done, fmt.Errorf("read: %w", err)
		}
		if n == 0 {
			break
		}
		done += n
	}
	return done, nil
}

// checkSpace reports a full file system. The program writes its output itself
// and may ignore the failure of a write, so this is the only trace of a loss;
// better a failed round than a short output taken for the whole.
func checkSpace(fd int) error {
	var stat unix.Statfs_t
	if err := retryInterrupted(func() error { return unix.Fstatfs(fd, &stat) }); err != nil {
		return fmt.Errorf("statfs: %w", err)
	}
	free := stat.Bavail
	if os.Geteuid() == 0 {
		free = stat.Bfree
	}
	if stat.Blocks > 0 && free == 0 {
		return fmt.Errorf("the file system is full, the output may be incomplete: %w", unix.ENOSPC)
	}
	return nil
}
