package shim

import (
	"os"
	"syscall"
	"time"
)

// Program is one round's program.
type Program struct {
	// Dir is the program directory, which holds run.sh and is its working
	// directory; relative to the working directory of this process.
	Dir string
	// Args are the words after ./run.sh.
	Args []string
	// Env is the complete environment as NAME=value, to which TDF_SHIM is added,
	// and HOME, USER and LOGNAME are those of Options.RunAs if that is set.
	Env []string
	// Files are stdin (nil: /dev/null), stdout and stderr (nil: /dev/null). They
	// stay the caller's, who closes them; descriptors become blocking.
	Files [3]*os.File
	// Grace is the time between TERM and KILL once ctx is done; 0 kills at once.
	Grace time.Duration
	// Hurry is asked when ctx is done; true means no grace: KILL at once. Thus a
	// caller who has lost patience before the program started, when Kill finds no
	// round, is heard too. It is called on a goroutine of its own, at most once;
	// nil means false.
	Hurry func() bool
}

// graceNow is the grace once ctx is done.
func (p *Program) graceNow() time.Duration {
	if p.Hurry != nil && p.Hurry() {
		return 0
	}
	return p.Grace
}

// Cause is why a round was ended from outside.
type Cause string

// The causes. Of several the first counts.
const (
	Ended     Cause = ""          // by itself
	Cancelled Cause = "cancelled" // ctx
	LeaseOver Cause = "lease"     // the deadline of Extend passed
	Killed    Cause = "killed"    // Kill was called
)

// Result is how the program ended.
type Result struct {
	// Started says that run.sh was executed.
	Started bool
	// ExitCode is the exit status of run.sh, or -1 for a signal or if it never ran.
	ExitCode int
	// Signal is the signal that ended run.sh, or 0.
	Signal syscall.Signal
	// Cause is why it was ended from outside. The exit code is still that of
	// run.sh, which may handle SIGTERM.
	Cause Cause
	// UserTime and SystemTime are the CPU times of run.sh and the children it waited for.
	UserTime, SystemTime time.Duration
	// MaxMemory is the most memory of the round's cgroup in bytes, or else the
	// largest resident set among run.sh and the children it waited for, which
	// Linux counts from before exec, so that it is never less than the shim's.
	MaxMemory int64
	// OutOfMemory says that memory_max was reached and the kernel killed for it.
	OutOfMemory bool
}
