package route

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-go/tdf/statemachine"
)

// maxName is the longest name of a queue, an env or a resource, in bytes.
const maxName = 64

// The range of a priority.
const (
	MinPriority = -1000
	MaxPriority = 1000
)

const wantName = "1 to 64 letters, digits, dots, underscores and dashes that begin with a letter, a digit or an underscore"

const wantPriority = "a whole number from -1000 to 1000; write for example 10"

// bad makes the error of this package.
func bad(field, value, want string) error {
	return &statemachine.FieldError{Field: field, Value: value, Want: want}
}

// CheckQueueName wants 1 to 64 letters, digits, dots, underscores and dashes, no
// dot or dash in front.
func CheckQueueName(name string) error {
	if !word(name, "._-") {
		return bad("queue", name, "the name of a queue: "+wantName)
	}
	return nil
}

// CheckEnv wants an empty text, which is no env, or a name like that of a queue.
func CheckEnv(name string) error {
	if name != "" && !word(name, "._-") {
		return bad("env", name, "empty or a name of "+wantName+"; write for example python")
	}
	return nil
}

// CheckPriority wants -1000 to 1000.
func CheckPriority(p int) error {
	_, err := ParsePriority(strconv.Itoa(p))
	return err
}

// ParsePriority reads a whole number from -1000 to 1000; the empty text is 0.
func ParsePriority(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	p, ok := whole(text, MinPriority, MaxPriority)
	if !ok {
		return 0, bad("priority", text, wantPriority)
	}
	return p, nil
}

// CheckClass wants the class of a queue, as workers offer it: a printable text
// of at most 128 bytes without blanks, commas and equals signs. Empty is no class.
func CheckClass(class string) error {
	if class != "" && (!plain(class, maxText) || strings.Contains(class, "=")) {
		return bad("class", class, "empty or a name of at most 128 bytes without blanks, commas and equals signs; write for example render")
	}
	return nil
}

// CheckOffer wants a class as a worker offers it: name or name=version, the name
// as [CheckClass] has it.
func CheckOffer(class string) error {
	name, version, ok := strings.Cut(class, "=")
	if name == "" || CheckClass(name) != nil || ok && (CheckClass(version) != nil || version == "") {
		return bad("classes", class, "name or name=version, without blanks and commas; write for example render=2.1")
	}
	return nil
}

// CheckNode wants the name of a node: a printable text of at most 128 bytes
// without blanks, commas, slashes and backslashes, not a dot or two.
func CheckNode(name string) error {
	if !plain(name, maxText) || strings.ContainsAny(name, `/\`) || name == "." || name == ".." {
		return bad("node", name, "the name of a node: 1 to 128 bytes without blanks, commas and slashes; write for example node-1")
	}
	return nil
}

// DisbatchNode reports whether a name is a node id of Disbatch's specification: 1
// to 8 letters, digits and underscores, a letter first. Ours may be longer.
func DisbatchNode(name string) bool {
	return len(name) <= 8 && word(name, "") && name[0] != '_' && (name[0] < '0' || name[0] > '9')
}

// word reports whether text is a name of letters, digits, and signs that do not
// stand in front, but for the underscore.
func word(text, signs string) bool {
	if text == "" || len(text) > maxName {
		return false
	}
	for i := range len(text) {
		c := text[i]
		alnum := c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && (i == 0 || strings.IndexByte(signs, c) < 0) {
			return false
		}
	}
	return true
}

// printable reports whether text can be shown in a line.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// plain reports whether text can stand in a list: printable, not empty, without
// blanks and commas.
func plain(text string, most int) bool {
	return text != "" && len(text) <= most && printable(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}
