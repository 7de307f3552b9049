package fetch

import (
	"errors"
	"fmt"
)

// Errors that callers may want to tell apart, matched with errors.Is.
var (
	// ErrInvalidProgram: the program name cannot name a directory safely.
	ErrInvalidProgram = errors.New("invalid program name")
	// ErrInvalidSource: the source cannot be parsed or carries credentials.
	ErrInvalidSource = errors.New("invalid source")
	// ErrInvalidType: the source ends in none of the supported endings.
	ErrInvalidType = errors.New("invalid type of archive / program")
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
	return fmt.Sprintf("could not fetch program '%s'%s: %v", printable(e.Program), at, e.Err)
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

// Error names option, limit and remedy.
func (e *LimitError) Error() string {
	where := ""
	if e.Where != "" {
		where = fmt.Sprintf(" in '%s'", printable(e.Where))
	}
	return fmt.Sprintf("%s of %d exceeded%s: raise it at the worker if the program is trusted", e.Option, e.Limit, where)
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

// Error names field, value and remedy.
func (e *OptionError) Error() string {
	return fmt.Sprintf("fetch option %s: bad value %q: %s", e.Field, fmt.Sprint(e.Value), e.Remedy)
}
