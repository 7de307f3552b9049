// Package control reads what a program tells its worker through the file
// $TDF_CONTROL.
//
// The program writes lines key=value to that file, which it may create, append
// to or replace. Known are "progress": a part from 0 to 1 or a percentage, then
// optionally a space and a text, and "result": all that stands behind the equals
// sign, byte for byte, as in
//
//	progress=0.4 reading input
//	progress=40% reading input
//	result=42
//
// The last good line counts. Progress counts once its line feed is written, and
// only the last 64 KiB are looked at; the result is what the file says when the
// program has ended (see [Reader.Result]). The program is not trusted: nothing is
// followed that is not a plain file, and reading never blocks.
package control

import (
	"errors"
	"fmt"
	"slices"
)

// ErrRefused means that the control file is no plain file.
var ErrRefused = errors.New("control: not a regular file")

// Progress is how far a program says it has come.
type Progress struct {
	// Part is from 0 to 1.
	Part float64
	// Text is what it is doing, at most 200 bytes of valid UTF-8 without control
	// characters; may be empty.
	Text string
}

// Reader follows one control file. It is for one goroutine; the zero value but
// for Path is ready, and there is nothing to close.
type Reader struct {
	// Path is the file, which need not exist yet.
	Path string
	// As runs what opens the file, with the rights of the program's user: a hard link
	// to a file that the program cannot read is not read for it. Nil is this process'.
	As func(open func() error) error

	progress Progress
	warnings []string
	seen     stamp
}

// Poll returns what the program has said last and whether that is new since the
// Poll before. If the file has not changed it costs one stat. After an error,
// which is ErrRefused or the system's, Progress is still the last known.
func (r *Reader) Poll() (p Progress, changed bool, err error) {
	text, fresh, err := r.read()
	if err != nil || !fresh {
		return r.progress, false, err
	}
	before := r.progress
	r.parse(text)
	return r.progress, r.progress != before, nil
}

// Warnings are the lines that were not understood, in the program's own words
// but made printable; each is told once and at most ten altogether.
func (r *Reader) Warnings() []string { return slices.Clone(r.warnings) }

func (r *Reader) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(r.warnings) < maxWarnings && !slices.Contains(r.warnings, text) {
		r.warnings = append(r.warnings, text)
	}
}
