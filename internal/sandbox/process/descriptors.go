package process

import (
	"fmt"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// SealDescriptors marks every open descriptor above stderr close-on-exec. What
// this program opens itself is so marked already; a worker calls it once at its
// start for descriptors it inherited from whoever started it (a supervisor, a
// make with its job server), which every round would inherit in turn.
func SealDescriptors() error {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	return sealListed()
}

// sealListed is SealDescriptors for Linux before 5.11.
func sealListed() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("process: list inherited descriptors: %w", err)
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
