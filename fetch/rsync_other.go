//go:build unix && !linux

package fetch

import (
	"os"
	"syscall"
)

// childAttr puts rsync, with the ssh it starts, into a process group.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func placeOf(dir *os.File) string { return dir.Name() }

func killGroup(p *os.Process) error {
	return os.NewSyscallError("kill", syscall.Kill(-p.Pid, syscall.SIGKILL))
}

// limitFileSize has no way to limit another process here; the size is checked
// after the transfer.
func limitFileSize(int, int64) {}
