package config

import (
	"errors"
	"strconv"
	"strings"
)

// What can be wrong with a configuration; an *Error matches one of these.
var (
	// ErrUnreadable means that the file cannot be read or is no INI file.
	ErrUnreadable = errors.New("unreadable configuration")
	// ErrUnknown means an unknown section or key.
	ErrUnknown = errors.New("unknown configuration key")
	// ErrMissing means that a required section or key is not there.
	ErrMissing = errors.New("missing configuration")
	// ErrInvalid means a value of the wrong type, out of its limits, or in
	// contradiction to another one.
	ErrInvalid = errors.New("invalid configuration")
)

// Error is one problem of a configuration: where, what, and what to do. Several
// problems of one file are joined by errors.Join; errors.As finds the first.
type Error struct {
	// File is where the value stands: the path of the file, "environment
	// TDF_SECTION_KEY" or "flag --set"; empty outside of a file.
	File string
	// Line counts from 1; 0 means unknown or not in a file.
	Line int
	// Section and Key name the setting; empty if the whole file is meant.
	Section, Key string
	// Value is the text refused; empty for secret and unknown keys.
	Value string
	// Problem says what is wrong, Remedy what to do about it.
	Problem, Remedy string
	// Err is one of the sentinels above, or joins it with the cause.
	Err error
}

// Error returns one line: file:line: [section] key = "value": problem; remedy.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			b.WriteString(":" + strconv.Itoa(e.Line))
		}
		b.WriteString(": ")
	}
	if e.Section != "" {
		b.WriteString("[" + e.Section + "]")
		if e.Key != "" {
			b.WriteString(" " + e.Key)
			if e.Value != "" {
				b.WriteString(" = " + strconv.Quote(e.Value))
			}
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Problem)
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

// Unwrap returns the sentinel, and the cause if there is one.
func (e *Error) Unwrap() error { return e.Err }

// ExitCode is 2, "usage or configuration", for programs that end with this error.
func (e *Error) ExitCode() int { return 2 }
