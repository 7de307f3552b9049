package process

import "strings"

// SplitInput splits a task's input into words as the original's unquoted $input
// did: on blanks, tabs and newlines, with none of them kept and no empty word.
// Nothing is interpreted: quotes, globs, variables and command substitutions
// stay as they are. Words with blanks in them need an argument vector instead.
func SplitInput(input string) []string {
	return strings.FieldsFunc(input, func(r rune) bool {
		return r == ' ' || r == '\t' || r == '\n'
	})
}
