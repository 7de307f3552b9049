package disk

import (
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// Unknown is the free space of a file system that does not count its space.
const Unknown = math.MaxUint64

// Free returns the bytes that this process may still write to the file system
// of path; for root these include what is set aside for root. It is [Unknown]
// where the file system has no size. The error wraps the system's.
func Free(path string) (bytes uint64, err error) {
	stat, err := statfs(path)
	if err != nil {
		return 0, err
	}
	if stat.Blocks == 0 {
		return Unknown, nil
	}
	blocks := stat.Bavail
	if os.Geteuid() == 0 {
		blocks = stat.Bfree
	}
	return blocks * uint64(stat.Bsize), nil
}

func statfs(path string) (unix.Statfs_t, error) {
	var stat unix.Statfs_t
	for {
		err := unix.Statfs(path, &stat)
		if err == nil {
			return stat, nil
		}
		if !errors.Is(err, unix.EINTR) {
			return stat, fmt.Errorf("free space of '%s': %w", path, err)
		}
	}
}
