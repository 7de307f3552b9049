// Package clean makes text from elsewhere (names, outputs and errors of tasks,
// answers of servers) fit for logs and terminals.
package clean

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mark ends a text that was cut.
const mark = "..."

// Line makes s fit for one line: line ends and other control characters,
// invisible and bidirectional ones, and bytes that are not UTF-8 are written as
// \n, \x1b, \u202e, \xff and so on. With a limit above 0 the result has at most
// that many bytes, of which the last three are "..." if it was cut; neither a
// character nor an escape is ever cut apart.
func Line(s string, limit int) string { return escape(s, "", limit) }

// Lines is Line for text of several lines: line ends and tabs stay.
func Lines(s string, limit int) string { return escape(s, "\n\t", limit) }

func escape(s, keep string, limit int) string {
	if fits(len(s), limit) && !strings.ContainsFunc(s, odd) {
		return s
	}
	var b strings.Builder
	fit := 0 // how much stands before the mark, should there be one
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		piece := s[:size]
		if odd(r) && !strings.ContainsRune(keep, r) {
			piece = escaped(r, piece)
		}
		if !fits(b.Len()+len(piece), limit) {
			return b.String()[:fit] + mark[:min(limit, len(mark))]
		}
		b.WriteString(piece)
		if b.Len() <= limit-len(mark) {
			fit = b.Len()
		}
		s = s[size:]
	}
	return b.String()
}

func fits(n, limit int) bool { return limit <= 0 || n <= limit }

// odd also says yes to the replacement character, which is what invalid bytes
// are decoded to; a real one stays what it is.
func odd(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }

// escaped writes a character as Go does in a string.
func escaped(r rune, text string) string {
	switch {
	case r == utf8.RuneError && len(text) == 1:
		return fmt.Sprintf(`\x%02x`, text[0])
	case r == utf8.RuneError:
		return text
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == '\r':
		return `\r`
	case r < utf8.RuneSelf:
		return fmt.Sprintf(`\x%02x`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	default:
		return fmt.Sprintf(`\U%08x`, r)
	}
}
