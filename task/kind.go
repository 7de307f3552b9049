package task

import (
	"encoding/json"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
)

// kind is what values a field has.
type kind struct {
	name, limits         string // for the reference
	number, list, moment bool
	// parse returns the one text for a value; its error has no field name.
	parse func(text string) (string, error)
	// get is what a spec says for the field, false if nothing; set sets it to a
	// text that parse has returned, clear to nothing.
	get   func(s *Spec) (string, bool)
	set   func(s *Spec, text string)
	clear func(s *Spec)
	// value is what the field of a spec holds.
	value func(s *Spec) any
	// textual says that this is a text, or a list of them, secret that nobody who looks at a task, and no error, may show its values.
	textual, secret bool
	// alone says that one text may stand for a list of it.
	alone bool
}

// bind binds a kind to a field of Spec, whose zero value says nothing: write is
// the text of any other, and read the value of a text that parse has returned.
func bind[T any](k kind, field func(*Spec) *T, write func(T) string, read func(string) T) kind {
	k.get = func(s *Spec) (string, bool) {
		v := field(s)
		if reflect.ValueOf(v).Elem().IsZero() {
			return "", false
		}
		return write(*v), true
	}
	k.set = func(s *Spec, text string) { *field(s) = read(text) }
	k.clear = func(s *Spec) { *field(s) = *new(T) }
	k.value = func(s *Spec) any { return *field(s) }
	return k
}

// text is a field that check finds right.
func text(field func(*Spec) *string, check func(string) error) kind {
	return bind(kind{name: "text", parse: checked(check)}, field, itself, itself)
}

// checked is a text that check finds right, as it is.
func checked(check func(string) error) func(string) (string, error) {
	return func(s string) (string, error) { return s, check(s) }
}

func itself(s string) string { return s }

// word is one of some words, or nothing for the first, which is the default.
func word(field func(*Spec) *string, words ...string) kind {
	last := len(words) - 1
	limits := strings.Join(words[:last], ", ") + " or " + words[last]
	return bind(kind{name: "word", limits: limits, parse: func(s string) (string, error) {
		switch {
		case s == "":
			return words[0], nil
		case !slices.Contains(words, s):
			return "", bad("", s, "one of "+strings.Join(words, ", "))
		}
		return s, nil
	}}, field, itself, itself)
}

// moment is a time in seconds since 1970, as it was written. none is the text of no
// such time, which a spec says by a negative duration from its opening on.
func moment(field func(*Spec) (*time.Time, *time.Duration), none string) kind {
	k := kind{name: "unix seconds", limits: "0 or more", number: true, moment: true}
	if none == infinite {
		k.limits += ", or inf"
	}
	k.parse = func(s string) (string, error) {
		t, err := statemachine.ParseTime(s)
		switch {
		case err != nil, t == statemachine.Never && none != infinite:
			return "", bad("", s, "a time in unix seconds, "+k.limits)
		case t == statemachine.Never:
			return t.Text(), nil
		}
		return s, nil
	}
	k.get = func(s *Spec) (string, bool) {
		at, in := field(s)
		switch {
		case *in < 0:
			return none, true
		case at.IsZero():
			return "", false
		}
		return MomentText(*at), true
	}
	k.set = func(s *Spec, text string) {
		at, in := field(s)
		t, _ := statemachine.ParseTime(text) // was parsed
		if *at, *in = time.UnixMicro(int64(t)).UTC(), 0; short(t.Text()) == none {
			*at, *in = time.Time{}, -1
		}
	}
	k.clear = func(s *Spec) {
		at, in := field(s)
		*at, *in = time.Time{}, 0
	}
	k.value = func(s *Spec) any {
		at, _ := field(s)
		return *at
	}
	return k
}

// MomentText is a moment as records and flags have it: seconds since 1970.
func MomentText(t time.Time) string { return short(statemachine.Time(t.UnixMicro()).Text()) }

// span is a time above 0, as it was written if that is in seconds.
func span(field func(*Spec) *time.Duration) kind {
	k := pause(field)
	parse := k.parse
	k.parse = func(s string) (string, error) {
		canonical, err := parse(s)
		if _, inSeconds := statemachine.ParseDuration(s); err == nil && inSeconds == nil && canonical != infinite {
			return s, nil
		}
		return canonical, err
	}
	return k
}

// pause is a time above 0.
func pause(field func(*Spec) *time.Duration) kind {
	return lasting(field, infinite, "above 0, or inf", func(s string) (string, error) {
		d, err := parseSeconds(s)
		if err != nil || d <= 0 {
			return "", bad("", s, "a number of seconds above 0, or inf; write for example 90 or 1h30m")
		}
		return secondsText(d), nil
	})
}

// longestDelay is the longest pause before a retry: a year, beyond which is a slip.
const longestDelay = 365 * 86400 * statemachine.Second

// delay is a pause that may be 0.
func delay(field func(*Spec) *time.Duration) kind {
	return lasting(field, "0", "from 0 to 31536000", func(s string) (string, error) {
		d, err := parseSeconds(s)
		if err != nil || d > longestDelay {
			return "", bad("", s, "a number of seconds from 0 to 31536000; write for example 60 or 5m")
		}
		return secondsText(d), nil
	})
}

// lasting is a duration. none is the text of a negative one.
func lasting(field func(*Spec) *time.Duration, none, limits string, parse func(string) (string, error)) kind {
	return bind(kind{name: "seconds", limits: limits, number: true, parse: parse}, field, func(d time.Duration) string {
		if d < 0 {
			return none
		}
		return secondsText(timing.FromStd(d))
	}, func(s string) time.Duration {
		if s == none {
			return -1
		}
		d, _ := statemachine.ParseDuration(s) // was parsed
		return timing.ToStd(d)
	})
}

// count is how often something may happen.
func count(field func(*Spec) *Limit) kind {
	return bind(kind{name: "whole number", limits: "0 or more, or " + string(Unlimited), number: true, parse: parseCount},
		field, countText, countOf)
}

// whole is a whole number from least to most; nil where a spec says nothing.
func whole(field func(*Spec) **int, least, most int) kind {
	limits := "from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
	return bind(kind{name: "whole number", limits: limits, number: true, parse: func(s string) (string, error) {
		n, ok := digitsOf(s, least, most)
		if !ok {
			return "", bad("", s, "a whole number "+limits+"; write for example 10")
		}
		return strconv.Itoa(n), nil
	}}, field, func(n *int) string { return strconv.Itoa(*n) }, func(s string) *int {
		n, _ := strconv.Atoi(s) // was parsed
		return &n
	})
}

// factor is a number from least to most. Where it may be 0, a negative one says so.
func factor(field func(*Spec) *float64, least, most float64) kind {
	limits := "from " + number(least) + " to " + number(most)
	return bind(kind{name: "number", limits: limits, number: true, parse: func(s string) (string, error) {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f >= least && f <= most) || strings.ContainsAny(s, "xX_") { // the form is false for NaN
			return "", bad("", s, "a number "+limits+"; write for example "+number((least+min(most, 2*least+1))/2))
		}
		return number(f), nil
	}}, field, func(f float64) string {
		if f < 0 && least == 0 {
			return "0"
		}
		return number(f)
	}, func(s string) float64 {
		f, _ := strconv.ParseFloat(s, 64) // was parsed
		if f == 0 {
			return -1
		}
		return f
	})
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// list is a list whose one form parse returns.
func list[T any](
	field func(*Spec) *T, of string, parse func(string) (string, error), write func(T) string, read func(string) T,
) kind {
	return bind(kind{name: "list", limits: of, list: true, parse: parse}, field, write, read)
}

func labels(field func(*Spec) *[]string) kind {
	return list(field, "of label=value", ParseLabels, joined,
		func(s string) []string { return append([]string{}, split(s)...) })
}

// split is the list of a text; nil for the empty one.
func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func resources(field func(*Spec) *map[string]int) kind {
	return list(field, "of name=number",
		func(s string) (string, error) {
			r, err := ParseResources(s)
			return r.Text(), err
		},
		func(r map[string]int) string { return Resources(r).Text() },
		func(s string) map[string]int {
			r, _ := ParseResources(s) // was parsed
			if r == nil {
				r = Resources{}
			}
			return r
		})
}

// codes are exit codes.
func codes(field func(*Spec) *[]int) kind {
	return list(field, ofCodes, func(s string) (string, error) {
		codes, ok := readCodes(s)
		if !ok {
			return "", bad("", s, "a list of exit codes from 0 to 255; write for example 1,2,75")
		}
		slices.Sort(codes)
		return codesText(slices.Compact(codes)), nil
	}, codesText, func(s string) []int {
		codes, _ := readCodes(s) // was parsed
		return codes
	})
}

const ofCodes = "of numbers from 0 to 255"

func readCodes(s string) ([]int, bool) {
	items := split(s)
	codes := make([]int, len(items))
	for i, item := range items {
		var ok bool
		if codes[i], ok = digitsOf(item, 0, 255); !ok {
			return nil, false
		}
	}
	return codes, true
}

func codesText(codes []int) string {
	texts := make([]string, len(codes))
	for i, code := range codes {
		texts[i] = strconv.Itoa(code)
	}
	return joined(texts)
}

// argv is a list of words, a JSON array in records.
func argv(field func(*Spec) *[]string) kind {
	return bind(kind{name: jsonArray, limits: "of texts", parse: checkArgv}, field, listText, words)
}

const jsonArray = "JSON array"

// listText is a list as records have it. A word that JSON would change becomes
// the text, so that it is refused.
func listText(l []string) string {
	for _, word := range l {
		if !utf8.ValidString(word) {
			return word
		}
	}
	text, _ := json.Marshal(l) //nolint:errchkjson // texts always can
	return string(text)
}

// patterns are names of files below a directory, a JSON array in records.
func patterns(field func(*Spec) *[]string) kind {
	return bind(kind{name: jsonArray, limits: "of texts, at most " + strconv.Itoa(maxPatterns), alone: true, parse: checkPatterns},
		field, listText, words)
}

// The most patterns of a task, and the longest one in bytes.
const (
	maxPatterns = 100
	maxPattern  = 1024
)

func checkPatterns(s string) (string, error) {
	text, err := checkArgv(s)
	if err != nil || text == "" {
		return "", err
	}
	list := words(text)
	if len(list) == 0 {
		return "", nil
	}
	if len(list) > maxPatterns {
		return "", bad("", strconv.Itoa(len(list))+" names", "at most "+strconv.Itoa(maxPatterns)+"; name directories, or use *")
	}
	for i, p := range list {
		name := path.Clean(p)
		if p == "" || !fs.ValidPath(name) || !matchable(name) || len(p) > maxPattern || !printable(p) {
			return "", bad("", p, "a name below the directory of the round, such as out/*.csv, or . for all")
		}
		list[i] = name
	}
	return listText(list), nil
}

// matchable reports whether each element of a pattern can match something.
func matchable(pattern string) bool {
	if strings.HasPrefix(pattern, ".tdf-") { // TDF's own files
		return false
	}
	for element := range strings.SplitSeq(pattern, "/") {
		if _, err := path.Match(element, ""); err != nil {
			return false
		}
	}
	return true
}

const wantWord = "UTF-8 text without NUL characters"

func checkArgv(s string) (string, error) {
	if s == "" {
		return "", nil
	}
	var list []string
	switch err := json.Unmarshal([]byte(s), &list); {
	case !utf8.ValidString(s):
		return "", bad("", s, wantWord)
	case err != nil || list == nil:
		return "", bad("", s, "a list of texts")
	}
	return listText(list), nil
}

func checkSource(s string) error {
	if strings.ContainsRune(s, 0) {
		return bad("", clean.Source(s), "a text without NUL characters")
	}
	return nil
}

// The longest texts for people, in bytes.
const (
	maxKey  = 4096
	maxHold = 1024 // also of a comment
	maxStep = 128
)

// printed is a line for people of a limited number of bytes.
func printed(most int) func(string) error {
	return func(s string) error {
		if len(s) > most || !printable(s) {
			return bad("", s, "a line of printable text of at most "+strconv.Itoa(most)+" bytes")
		}
		return nil
	}
}
