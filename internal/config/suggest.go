package config

import "strings"

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

// Nearest returns the word that differs least from name, if that is close
// enough to be a slip: a third of the letters, one at least. It is empty if
// there is none.
func Nearest(name string, words []string) string {
	if len(name) > maxName {
		return ""
	}
	best, least := "", max(1, len(name)/3)+1
	for _, word := range words {
		if d := distance(name, word); d < least {
			best, least = word, d
		}
	}
	return best
}

// distance is the Levenshtein distance of two texts, in bytes.
func distance(a, b string) int {
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
