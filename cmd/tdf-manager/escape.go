package main

import (
	"io"
	"slices"
	"unicode/utf8"

	"github.com/tdf-go/tdf/internal/base/cli"
)

// terminal writes text of programs to a terminal, control characters escaped. A
// character that comes in two writes is not taken for garbage: its first bytes
// wait for the others.
type terminal struct {
	w    io.Writer
	rest []byte
}

// Write never writes less than it was given, except with an error.
func (t *terminal) Write(p []byte) (int, error) {
	text := slices.Concat(t.rest, p)
	cut := len(text) - unfinished(text)
	t.rest = text[cut:]
	if _, err := io.WriteString(t.w, cli.SafeLines(string(text[:cut]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what waits: the others do not come.
func (t *terminal) Flush() error {
	text := string(t.rest)
	t.rest = nil
	_, err := io.WriteString(t.w, cli.SafeLines(text))
	return err
}

// unfinished is the number of bytes at the end that may begin a character.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		last := text[len(text)-n:]
		if utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}
