package spool

import (
	"errors"
	"fmt"

	"github.com/tdf-go/tdf/internal/base/clean"
)

// Errors that callers may want to tell apart, matched with errors.Is.
var (
	// ErrLocked means that another process has the same spool open.
	ErrLocked = errors.New("spool is in use by another process")
	// ErrClosed means that the spool was closed.
	ErrClosed = errors.New("spool is closed")
	// ErrNotPrivate means that others could write to the spool.
	ErrNotPrivate = errors.New("spool is not private")
	// ErrInvalidName means a name that no entry can have.
	ErrInvalidName = errors.New("invalid spool name")
)

// DamagedError is about a file of the spool that is no whole entry. It stays
// where it is, for somebody to look at.
type DamagedError struct {
	// Path is the file's, Problem what is wrong with it.
	Path, Problem string
	// Err is the cause, possibly nil.
	Err error
}

// Error names path, problem and remedy.
func (e *DamagedError) Error() string {
	text := fmt.Sprintf("spool file '%s' %s", clean.Line(e.Path, 0), e.Problem)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + ": it is left alone, look at it and remove it"
}

// Unwrap gives the cause.
func (e *DamagedError) Unwrap() error { return e.Err }
