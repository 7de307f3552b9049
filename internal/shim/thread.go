package shim

import (
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
