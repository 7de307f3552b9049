package fetch

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttr puts rsync, with the ssh it starts, into a process group of its
// own and ends it when the worker dies.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// placeOf is where a child finds an open directory, whatever its name is by now.
func placeOf(dir *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) }

func killGroup(p *os.Process) error {
	return os.NewSyscallError("kill", syscall.Kill(-p.Pid, syscall.SIGKILL))
}

// limitFileSize stops a sender that sends more than it announced. It is a
// second line: the size is checked again afterwards, so an error is no harm.
func limitFileSize(pid int, limit int64) {
	rlimit := unix.Rlimit{Cur: uint64(limit), Max: uint64(limit)}
	_ = unix.Prlimit(pid, unix.RLIMIT_FSIZE, &rlimit, nil)
}
