package redistest

import "syscall"

// dieWithParent makes the kernel kill the server when the test binary dies,
// also by SIGKILL or by a panic.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
