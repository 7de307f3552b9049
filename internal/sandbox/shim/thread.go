package shim

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The functions of package syscall change all threads of the process; these
// change the one they are called on, which is what executes.

// setThreadGroups sets the supplementary groups.
func setThreadGroups(groups []int) error {
	ids := make([]uint32, max(1, len(groups)))
	for i, id := range groups {
		ids[i] = uint32(id)
	}
	first := unsafe.Pointer(&ids[0]) //nolint:gosec // there is no function for one thread
	_, _, errno := syscall.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0)
	if errno != 0 {
		return errno //nolint:wrapcheck // bare, as a launcher reports it
	}
	return nil
}

// lend runs f on a thread of its own, which has the rights of who until it ends.
func (i *identity) lend(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that nothing else runs on the thread
		err := setThreadGroups(i.Groups)
		if err == nil {
			err = lendThread(unix.SYS_SETRESGID, i.GID)
		}
		if err == nil {
			err = lendThread(unix.SYS_SETRESUID, i.UID)
		}
		if err != nil {
			done <- fmt.Errorf("shim: take the rights of user %d: %w", i.UID, err)
			return
		}
		done <- f()
	}()
	return <-done
}

// lendThread sets the effective user or group: the process keeps its own, so that
// nobody of that user can signal or trace it.
func lendThread(call uintptr, id int) error {
	if _, _, errno := syscall.RawSyscall(call, ^uintptr(0), uintptr(id), ^uintptr(0)); errno != 0 {
		return errno //nolint:wrapcheck // by lend
	}
	return nil
}

// setThreadIDs sets the effective user or group only.
func setThreadIDs(call uintptr, id int) {
	_, _, _ = syscall.RawSyscall(call, ^uintptr(0), uintptr(id), ^uintptr(0)) //nolint:dogsled // see asUser
}

// becomeThread sets real, effective and saved user or group.
func becomeThread(call uintptr, id int) error {
	if _, _, errno := syscall.RawSyscall(call, uintptr(id), uintptr(id), uintptr(id)); errno != 0 {
		return errno //nolint:wrapcheck // bare, as a launcher reports it
	}
	return nil
}
