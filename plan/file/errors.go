package file

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one thing that is wrong with a plan file.
type Error struct {
	// File is its name as given, Line counts from 1; 0 for what is in no line, such as a value of the command line.
	File string
	Line int
	// Field is where in the file it is, such as steps.load.needs; empty for the file as a whole.
	Field string
	// Err names the value and the remedy.
	Err error
}

// Error implements error: file:line: field: what is wrong.
func (e *Error) Error() string {
	text := e.File
	if e.Line > 0 {
		text = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if e.Field != "" {
		text += ": " + e.Field
	}
	return text + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// mostErrors is how many errors are told; who has more begins with these.
const mostErrors = 20

// Errors is all that is wrong with a plan file, in the order of its lines.
type Errors []*Error

// Error implements error: a line each.
func (e Errors) Error() string {
	lines := make([]string, 0, len(e))
	for _, one := range e[:min(len(e), mostErrors)] {
		lines = append(lines, one.Error())
	}
	if more := len(e) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("%s: and %d more", e[0].File, more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns them all.
func (e Errors) Unwrap() []error {
	list := make([]error, len(e))
	for i, one := range e {
		list[i] = one
	}
	return list
}

// ExitCode is that of wrong usage.
func (Errors) ExitCode() int { return 2 }

// problems collects errors of a file.
type problems struct {
	file string
	list Errors
}

func (p *problems) add(line int, field, format string, args ...any) {
	p.list = append(p.list, &Error{File: p.file, Line: line, Field: field, Err: fmt.Errorf(format, args...)})
}

// err is nil if there are none.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	return p.list
}
