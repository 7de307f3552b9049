package config

import (
	"errors"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/task"
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

// unknownSection describes a section nobody reads.
func (s schema) unknownSection(name string) *Error {
	names := make([]string, len(s))
	for i, sec := range s {
		names[i] = sec.name
	}
	remedy := "known sections are " + strings.Join(names, ", ")
	if near := nearest(name, names); near != "" {
		remedy = "did you mean [" + near + "]?"
	}
	return &Error{Section: printed(name), Problem: "unknown section", Remedy: remedy, Err: ErrUnknown}
}

// unknownKey describes a key nobody reads. A key in the wrong section is told
// where it belongs.
func (s schema) unknownKey(name string, sec section) *Error {
	e := &Error{Section: sec.name, Key: printed(name), Problem: "unknown key", Err: ErrUnknown}
	names := sec.names()
	if near := nearest(name, names); near != "" {
		e.Remedy = "did you mean " + near + "?"
		return e
	}
	for _, other := range s {
		if _, ok := other.key(name); ok {
			e.Remedy = "it belongs to section [" + other.name + "]"
			return e
		}
	}
	e.Remedy = "known keys are " + strings.Join(names, ", ")
	return e
}

func (s section) names() []string {
	names := make([]string, len(s.keys))
	for i, k := range s.keys {
		names[i] = k.name
	}
	return names
}

// printed makes a name from a file safe to show.
func printed(name string) string {
	quoted := quote(name)
	if quoted == `"`+name+`"` {
		return name
	}
	return quoted
}

// nearest is [task.Nearest] for names of sections and keys, which are all in lower
// case with underscores.
func nearest(name string, words []string) string {
	return task.Nearest(strings.ReplaceAll(strings.ToLower(name), "-", "_"), words)
}

// hidden stands for a secret wherever a configuration is shown.
const hidden = "****"

// mask hides what looks like a login in a value that is no secret by its key,
// for example host=redis://user:password@redis.
func mask(s string) string {
	at := strings.LastIndexByte(s, '@')
	if at < 0 || !strings.Contains(s[:at], ":") {
		return s
	}
	return hidden + s[at:]
}

// quote shows a name in an error, shortened, with control characters escaped.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
