//go:build !linux

package redistest

import "syscall"

// dieWithParent returns nothing: only Linux has parent-death signals. Elsewhere
// a test binary that is killed leaves its redis-server behind.
func dieWithParent() *syscall.SysProcAttr { return nil }
