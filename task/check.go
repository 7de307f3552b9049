package task

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/statemachine"
)

// maxName is the longest name of a resource, in bytes; those of queues and envs have
// the same limit.
const maxName = 64

// The range of a priority.
const (
	minPriority = -1000
	maxPriority = 1000
)

const wantName = "1 to 64 letters, digits, dots, underscores and dashes that begin with a letter, a digit or an underscore"

// bad makes the error of this package.
func bad(field, value, want string) error {
	return &statemachine.FieldError{Field: field, Value: value, Want: want}
}

// CheckQueueName wants 1 to 64 letters, digits, dots, underscores and dashes, no
// dot or dash in front.
func CheckQueueName(name string) error {
	if !plainName.MatchString(name) {
		return bad("queue", name, "the name of a queue: "+wantName)
	}
	return nil
}

// CheckEnv wants an empty text, which is no env, or a name like that of a queue.
func CheckEnv(name string) error {
	if name != "" && !plainName.MatchString(name) {
		return bad("env", name, "empty or a name of "+wantName+"; write for example python")
	}
	return nil
}

// CheckClass wants the class of a queue or a task, as workers offer it: a printable text
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
func DisbatchNode(name string) bool { return disbatchNode.MatchString(name) }

// What names look like: of a queue or an env as wantName says, and of a node of Disbatch.
var (
	plainName    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)
	disbatchNode = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,7}$`)
)

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

// digitsOf reads plain decimal digits with an optional minus, in their one
// spelling, from least to most.
func digitsOf(text string, least, most int) (int, bool) {
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text || n < least || n > most {
		return 0, false
	}
	return n, true
}

// parseSeconds reads seconds, inf, or a Go duration such as 5m. It is never
// negative. The error has no field name.
func parseSeconds(s string) (statemachine.Duration, error) {
	d, err := statemachine.ParseDuration(s)
	if err == nil {
		return d, nil
	}
	if g, goErr := time.ParseDuration(s); goErr == nil && g >= 0 {
		return statemachine.Duration(g.Round(time.Microsecond).Microseconds()), nil
	}
	return 0, err
}

func secondsText(d statemachine.Duration) string { return short(d.Text()) }

// checkProgram wants a name for a directory.
func checkProgram(name string) error {
	if name == "" || len(name) > maxText || !printable(name) || strings.ContainsAny(name, `/\`) || name == "." || name == ".." ||
		strings.TrimSpace(name) != name {
		return bad("program", name,
			"a name for a directory: 1 to 128 bytes of visible text without a slash, not a dot or two, no blank at its ends")
	}
	return nil
}

// maxVariables is the longest text of the variables of a task, in bytes: half of what the
// system passes on in one, so that they fit into an environment.
const maxVariables = 64 << 10

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkVariables wants a JSON object of texts. Its errors name variables, and never show a value.
func checkVariables(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	m := textsOf(s)
	switch {
	case m == nil || !utf8.ValidString(s):
		return "", bad("", clean.Hidden, wantVariables)
	case len(m) == 0:
		return "", nil
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if err := checkVariable(name, m[name]); err != nil {
			return "", err
		}
	}
	text := variablesText(m)
	if len(text) > maxVariables {
		return "", bad("", strconv.Itoa(len(text))+" bytes", "at most "+strconv.Itoa(maxVariables)+" bytes; hand larger values over in a file")
	}
	return text, nil
}

const wantVariables = `an object of texts, such as {"LANG":"C"}`

func checkVariable(name, value string) error {
	switch {
	case !variableName.MatchString(name):
		return bad("", name, "a name of letters, digits and underscores that begins with no digit; write for example LANG=C")
	case strings.HasPrefix(name, "TDF_"):
		return bad("", name, "free: the worker sets the variables that begin with TDF_; give it another name")
	case strings.ContainsRune(value, 0):
		return bad("", name, "set to "+wantWord)
	}
	return nil
}

// checkUnmasked refuses variables that were taken from what people see of a task, such as its
// record in an archive: no program may get a mask for a password.
func checkUnmasked(variables string) error {
	for name, value := range textsOf(variables) {
		if value == clean.Hidden {
			return bad("variables", name+"="+value, "a value: it stands where one is not shown, as in an archive; "+
				"open the task anew with its value, as submit --env "+name+"=VALUE does")
		}
	}
	return nil
}

// fieldOf is the field that an error is about, empty for none.
func fieldOf(err error) string {
	if fe, ok := errors.AsType[*statemachine.FieldError](err); ok {
		return fe.Field
	}
	return ""
}

// short leaves out zeros after the decimal point: people read these numbers.
func short(seconds string) string {
	if !strings.Contains(seconds, ".") {
		return seconds
	}
	return strings.TrimSuffix(strings.TrimRight(seconds, "0"), ".")
}

// named puts the name of a field into an error of this package or of
// statemachine.
func named(field string, err error) error {
	if fe, ok := errors.AsType[*statemachine.FieldError](err); ok {
		return bad(field, fe.Value, fe.Want)
	}
	return err
}

// unknownKey is the error for an unknown name.
func unknownKey(name string, known []string) error {
	if near := Nearest(strings.ReplaceAll(strings.ToLower(name), "-", "_"), known); near != "" {
		return bad("name", name, "known; did you mean "+near+"?")
	}
	return bad("name", name, "known; known are "+strings.Join(known, ", "))
}

// maxSlip is the longest text that is treated as a typing error.
const maxSlip = 128

// Nearest returns the word that differs least from name, if that is close
// enough for a typing error: a third of the letters, at least one. Otherwise it
// returns the empty string.
func Nearest(name string, words []string) string {
	if len(name) > maxSlip {
		return ""
	}
	best, least := "", max(1, len(name)/3)+1
	for _, w := range words {
		if d := Distance(name, w); d < least {
			best, least = w, d
		}
	}
	return best
}

// Distance is the Levenshtein distance of two texts, in bytes.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}
