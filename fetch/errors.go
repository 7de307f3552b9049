package fetch

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/tdf-go/tdf/internal/base/clean"
)

// Errors that callers may want to tell apart, matched with errors.Is.
var (
	// ErrNotRunnable: run.sh is missing, not a file, or not executable.
	ErrNotRunnable = errors.New("program cannot be run")
	// ErrUnpinned: the content had to be pinned with #sha256=HEX and was not.
	ErrUnpinned = errors.New("source is not pinned")
	// ErrChecksum: the content is not the pinned one.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrConflict: the program directory holds another source or content.
	ErrConflict = errors.New("program is already installed from elsewhere")
	// ErrArchive: the archive is damaged or holds what is never unpacked.
	ErrArchive = errors.New("archive refused")
	// ErrLimit: a configured limit of size, number or ratio was exceeded.
	ErrLimit = errors.New("limit exceeded")
	// ErrStalled: the sender was silent for longer than Options.StallTimeout.
	ErrStalled = errors.New("transfer stalled")
	// ErrTimeout: the fetch took longer than Options.Timeout.
	ErrTimeout = errors.New("fetch timed out")
	// ErrForbidden: the place the source points at may not be used.
	ErrForbidden = errors.New("not allowed")
)

// Error is what [Fetcher.Ensure] returns: the program, the worker if
// Options.Worker names one, and the cause.
type Error struct {
	Program string
	Worker  string
	Err     error
}

// Error gives the line a task's error field starts with.
func (e *Error) Error() string {
	at := ""
	if e.Worker != "" {
		at = fmt.Sprintf(" at worker '%s'", e.Worker)
	}
	// Errors of the system name files, whose names an archive chooses, those of net/http what a server has sent.
	return clean.Line(fmt.Sprintf("could not fetch program '%s'%s: %s", printable(e.Program), at, clean.URLs(e.Err.Error())), 0)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// ConflictError says that a program directory holds something else than the
// task asks for. Nothing is replaced: other tasks may be running it.
type ConflictError struct {
	Program string
	// Field is what differs: "source" or "sha256".
	Field string
	// Installed and Wanted are the two values of Field.
	Installed, Wanted string
}

// Error names both values and the remedy.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("program '%s' is already installed with %s '%s', the task wants '%s': "+
		"use another program name or remove the program's directory", e.Program, e.Field, e.Installed, e.Wanted)
}

// Is makes a ConflictError match [ErrConflict].
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// LimitError says which limit of [Options] was exceeded.
type LimitError struct {
	// Option is the name of the field of Options.
	Option string
	Limit  int64
	// Where is the file or entry, possibly empty.
	Where string
}

// Error names what was exceeded, the limit and the remedy.
func (e *LimitError) Error() string {
	where := ""
	if e.Where != "" {
		where = fmt.Sprintf(" in '%s'", printable(e.Where))
	}
	what := fmt.Sprintf(limitTexts[e.Option], e.Limit)
	if key := setting(e.Option); key != "" {
		return fmt.Sprintf("%s%s: raise %s if the program is trusted", what, where, key)
	}
	return what + where + ": pack it otherwise"
}

// Is makes a LimitError match [ErrLimit].
func (e *LimitError) Is(target error) bool { return target == ErrLimit }

// StatusError is an HTTP answer other than 200.
type StatusError struct{ Code int }

// Error gives the status code.
func (e *StatusError) Error() string {
	return fmt.Sprintf("server answered with HTTP status %d", e.Code)
}

// OptionError says which option is wrong and what would be right.
type OptionError struct {
	Field  string
	Value  any
	Remedy string
}

// Error names field, or the setting it comes from, value and remedy.
func (e *OptionError) Error() string {
	name := setting(e.Field)
	if name == "" {
		name = "fetch option " + e.Field
	}
	return fmt.Sprintf("%s: bad value %q: %s", name, fmt.Sprint(e.Value), e.Remedy)
}

// DiskFullError says that there was no room for a program. It matches
// syscall.ENOSPC, also where a quota was exceeded or a child process met the
// full disk. Nothing of the program is left, and the failure is not remembered:
// the next fetch tries again.
type DiskFullError struct {
	// Dir is the directory of programs on the full disk.
	Dir string
	// Err is what failed.
	Err error
}

// Error names the directory and what failed.
func (e *DiskFullError) Error() string {
	return fmt.Sprintf("the disk of '%s' is full: make room: %v", e.Dir, e.Err)
}

// Is makes a DiskFullError match syscall.ENOSPC.
func (e *DiskFullError) Is(target error) bool { return target == syscall.ENOSPC }

// Unwrap gives the cause.
func (e *DiskFullError) Unwrap() error { return e.Err }
