package cli

import "github.com/tdf-go/tdf/internal/base/clean"

// Safe escapes everything in a text that is not visible: control characters
// (with them ANSI sequences and line ends), invisible and reordering Unicode
// characters, and bytes that are not UTF-8. Text from tasks goes through it
// before it reaches a terminal.
func Safe(s string) string { return clean.Line(s, 0) }

// SafeLines is Safe for text of several lines: line ends and tabs stay.
func SafeLines(s string) string { return clean.Lines(s, 0) }
