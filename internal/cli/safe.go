package cli

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Safe escapes everything in a text that is not visible: control characters
// (with them ANSI sequences and line ends), invisible and reordering Unicode
// characters, and bytes that are not UTF-8. Text from tasks goes through it
// before it reaches a terminal.
func Safe(s string) string { return escape(s, "") }

// SafeLines is Safe for text of several lines: line ends and tabs stay.
func SafeLines(s string) string { return escape(s, "\n\t") }

func escape(s, keep string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsPrint(r) || strings.ContainsRune(keep, r):
			b.WriteRune(r)
		default:
			b.WriteString(escaped(r))
		}
		s = s[size:]
	}
	return b.String()
}

func escaped(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == '\r':
		return `\r`
	case r < 0x80:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	default:
		return fmt.Sprintf(`\U%08x`, r)
	}
}
