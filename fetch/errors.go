package fetch

import (
	"errors"
	"fmt"
	"net/http"
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
	// ErrLimit: a configured limit of size, number or ratio was exceeded.
	ErrLimit = errors.New("limit exceeded")
	// ErrMissing: the host that the source names answers that it has no such file.
	ErrMissing = errors.New("there is no such file")
	// ErrTimeout: the fetch took longer than Options.Timeout.
	ErrTimeout = errors.New("fetch timed out")
)

var (
	errArchive   = errors.New("archive refused")  // it is damaged or holds what is never unpacked
	errStalled   = errors.New("transfer stalled") // the sender was silent for longer than stallTimeout
	errForbidden = errors.New("not allowed")      // the place the source points at may not be used
	errUnchanged = errors.New("not changed")      // the source is what it was when it was seen before
)

// transferError means that nothing is known of what the source holds.
type transferError struct{ err error }

// Error is that of the cause.
func (e *transferError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *transferError) Unwrap() error { return e.err }

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

// limit is what a program may not exceed.
type limit struct {
	text   string // what is exceeded, with its number
	option string // the field of Options that is it; empty if nothing can be set
}

var (
	limitDownload  = limit{"the file is larger than %d bytes", "MaxBytes"}
	limitBytes     = limit{"it unpacks to more than %d bytes", "MaxBytes"}
	limitFileBytes = limit{"a file is larger than %d bytes", "MaxFileBytes"}
	limitEntries   = limit{"there are more than %d entries", "MaxEntries"}
	limitDepth     = limit{"directories are more than %d deep", ""}
	limitRatio     = limit{"it unpacks to more than %d times its own size, as only bombs do", ""}
)

// limitError says which limit was exceeded; it matches ErrLimit.
type limitError struct {
	of    limit
	most  int64
	where string // the file or entry, possibly empty
}

// Error names what was exceeded, the limit and the remedy.
func (e *limitError) Error() string {
	if e.of.option == "" {
		return e.what() + ": pack it otherwise"
	}
	return fmt.Sprintf("%s: raise %s if the program is trusted", e.what(), setting(e.of.option))
}

func (e *limitError) what() string {
	where := ""
	if e.where != "" {
		where = fmt.Sprintf(" in '%s'", printable(e.where))
	}
	return fmt.Sprintf(e.of.text, e.most) + where
}

// Is implements [errors.Is].
func (e *limitError) Is(target error) bool { return target == ErrLimit }

// statusError is an HTTP answer other than 200.
type statusError struct{ code int }

// Error gives the status code.
func (e *statusError) Error() string {
	return fmt.Sprintf("server answered with HTTP status %d", e.code)
}

// Is implements [errors.Is].
func (e *statusError) Is(target error) bool {
	return target == ErrMissing && (e.code == http.StatusNotFound || e.code == http.StatusGone)
}

// badOption says which option, or the setting it comes from, is wrong, and what would be right.
func badOption(field string, value any, remedy string) error {
	name := setting(field)
	if name == "" {
		name = "fetch option " + field
	}
	return fmt.Errorf("%s: bad value %q: %s", name, fmt.Sprint(value), remedy)
}

// diskFullError says that there was no room for a program in the directory dir. It matches
// syscall.ENOSPC, also where a quota was exceeded or a child process met the
// full disk. Nothing of the program is left, and the failure is not remembered:
// the next fetch tries again.
type diskFullError struct {
	dir string
	err error
}

// Error names the directory and what failed.
func (e *diskFullError) Error() string {
	return fmt.Sprintf("the disk of '%s' is full: make room: %v", e.dir, e.err)
}

// Is implements [errors.Is].
func (e *diskFullError) Is(target error) bool { return target == syscall.ENOSPC }

// Unwrap gives the cause.
func (e *diskFullError) Unwrap() error { return e.err }
