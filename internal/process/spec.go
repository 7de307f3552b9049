package process

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// DefaultOutputLimit is the OutputLimit used when a Spec has none: 1 MiB.
	DefaultOutputLimit int64 = 1 << 20
	// MaxOutputLimit is the largest OutputLimit accepted, 512 MiB: no Redis
	// string can hold more.
	MaxOutputLimit int64 = 512 << 20
)

// Spec describes one round's program. Only Dir is required.
type Spec struct {
	// Dir is the program directory: it holds run.sh and is its working directory.
	Dir string
	// Args are the words after ./run.sh; see SplitInput.
	Args []string
	// Env is the complete environment as NAME=value; nothing is added. See Environment.
	Env []string
	// Stdout and Stderr name the files that receive everything the program
	// writes. A relative name is relative to the worker, not to Dir. Missing
	// directories are created; an existing regular file is replaced by a new
	// one, so rounds that share a name never share bytes; anything else (a
	// symbolic link, a device) is refused. Empty means an unlinked temporary file.
	Stdout, Stderr string
	// TempDir is where unlinked temporary files live; empty means os.TempDir().
	// It must exist. ext4 is slow at creating files when many were just removed:
	// a no-op round takes about 1.5 times as long there as on tmpfs. On tmpfs in
	// turn the whole output of running rounds counts as memory.
	TempDir string
	// Timeout ends the round after this time on the monotonic clock; 0 means never.
	Timeout time.Duration
	// Grace is the time between SIGTERM and SIGKILL; 0 means SIGKILL at once.
	// It ends early, for the whole group, when run.sh itself ends.
	Grace time.Duration
	// OutputLimit is the number of bytes of each stream kept in the Result; 0
	// means DefaultOutputLimit, more than MaxOutputLimit is refused. Of a longer
	// stream the first half (rounded up) and the last half are kept with
	// Marker between them, which comes on top of the limit.
	OutputLimit int64
}

// Result is what one round's program did.
type Result struct {
	// Stdout and Stderr are the bytes written, exact up to OutputLimit, else
	// head, Marker and tail. Cuts are by bytes and may split a character.
	Stdout, Stderr []byte
	// StdoutBytes and StderrBytes are the true sizes in bytes.
	StdoutBytes, StderrBytes int64
	// StdoutTruncated and StderrTruncated tell that bytes were left out.
	StdoutTruncated, StderrTruncated bool
	// ExitCode is the exit status of run.sh, or -1 if a signal ended it or it never ran.
	ExitCode int
	// Signal is the signal that ended run.sh, or 0.
	Signal syscall.Signal
	// TimedOut and Cancelled tell why the group was terminated; at most one is
	// set. Neither is set if the program ended first. The exit code is still
	// that of run.sh, which may handle SIGTERM.
	TimedOut, Cancelled bool
	// Started is the time just before run.sh was started; zero if it never ran.
	Started time.Time
	// Duration runs from Started to the end of run.sh.
	Duration time.Duration
	// MaxRSS is the largest resident set in bytes among run.sh and the children
	// it waited for. Linux counts the time before exec too, so the value is
	// never smaller than the worker's own resident set.
	MaxRSS int64
	// UserTime and SysTime are the CPU times of run.sh and the children it waited for.
	UserTime, SysTime time.Duration
}

// validate refuses a Spec that cannot be run and fills in defaults.
func (s *Spec) validate() error {
	if s.OutputLimit == 0 {
		s.OutputLimit = DefaultOutputLimit
	}
	switch {
	case s.Dir == "":
		return s.refuse("Dir is empty; name the program directory")
	case s.Timeout < 0:
		return s.refuse("Timeout is %v; use 0 for none", s.Timeout)
	case s.Grace < 0:
		return s.refuse("Grace is %v; use 0 to kill at once", s.Grace)
	case s.OutputLimit < 0 || s.OutputLimit > MaxOutputLimit:
		return s.refuse("OutputLimit is %d; use 1 to %d bytes, or 0 for %d",
			s.OutputLimit, MaxOutputLimit, DefaultOutputLimit)
	case s.Stdout != "" && s.Stderr != "" && filepath.Clean(s.Stdout) == filepath.Clean(s.Stderr):
		return s.refuse("Stdout and Stderr both name %q; give each a file of its own", s.Stdout)
	}
	return s.validateStrings()
}

// validateStrings finds what execve cannot pass on: a NUL ends a C string.
func (s *Spec) validateStrings() error {
	for i, arg := range s.Args {
		if strings.IndexByte(arg, 0) >= 0 {
			return s.startError(ReasonArguments, fmt.Errorf("argument %d holds a NUL byte", i+1))
		}
	}
	for _, entry := range s.Env {
		if strings.IndexByte(entry, 0) >= 0 {
			name, _, _ := strings.Cut(entry, "=")
			return s.startError(ReasonArguments, fmt.Errorf("environment variable %q holds a NUL byte", name))
		}
	}
	return nil
}

func (s *Spec) refuse(format string, args ...any) error {
	return s.startError(ReasonSpec, fmt.Errorf(format, args...))
}

func (s *Spec) startError(reason Reason, err error) *StartError {
	return &StartError{Path: filepath.Join(s.Dir, programFile), Reason: reason, Err: err}
}
