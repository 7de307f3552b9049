package config

import (
	"strings"

	"github.com/tdf-go/tdf/internal/route"
)

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

// nearest is Nearest for names of sections and keys, which are all in lower
// case with underscores.
func nearest(name string, words []string) string {
	return Nearest(strings.ReplaceAll(strings.ToLower(name), "-", "_"), words)
}

// Nearest returns the word that differs least from name, if that is close enough
// to be a slip; see [route.Nearest].
func Nearest(name string, words []string) string { return route.Nearest(name, words) }
