package shim

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// Conceal makes this process not dumpable: programs of the same user can neither
// read its environment and memory under /proc nor trace it, and it leaves no
// core file.
func Conceal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("shim: make the process not dumpable: %w", err)
	}
	return nil
}

// revealing guards an attribute of the whole process.
var revealing sync.Mutex

// revealed runs f with this process dumpable: the files under /proc through
// which a user namespace gets its users belong to root otherwise.
func revealed(f func() error) error {
	revealing.Lock()
	defer revealing.Unlock()
	if dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || dumpable == 1 {
		return f()
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("shim: make the process dumpable for a moment: %w", err)
	}
	defer func() { _ = Conceal() }()
	return f()
}
