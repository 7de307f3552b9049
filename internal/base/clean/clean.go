// Package clean makes text from elsewhere (names, outputs and errors of tasks,
// answers of servers) fit for logs and terminals, and values fit for those who read JSON.
package clean

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
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

// WriteJSON writes v as one JSON value with a line end, indented, and without the escapes that only HTML needs.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// List is the list for JSON: [] instead of null for nil.
func List[T any](list []T) []T { return append([]T{}, list...) }

// Hidden stands where something was masked.
const Hidden = "***"

// Source makes the source of a program fit to be shown: a login in it and the
// value of every parameter behind a '?' or '#' are masked, since no list of names
// would hold all that tokens and signatures are called. A pin (#sha256=HEX) stays.
// Text that is no URL is masked in the same way; it never fails.
func Source(s string) string { return maskParameters(maskLogin(s)) }

// within finds URLs in a text. It takes more rather than less: what follows a URL
// without a blank or a quotation mark belongs to it.
var within = regexp.MustCompile("[A-Za-z][A-Za-z0-9+.-]*://[^\\s\"'<>`]+")

// URLs masks the URLs in a text, for example an error of net/http, as Source does.
func URLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return within.ReplaceAllStringFunc(text, Source)
}

// Values makes a JSON object of texts fit to be shown: each text, which may be a secret, is
// masked. Of any other text but the empty one nothing is left.
func Values(object string) string {
	if object == "" {
		return ""
	}
	var texts map[string]string
	if json.Unmarshal([]byte(object), &texts) != nil {
		return Hidden
	}
	for name := range texts {
		texts[name] = Hidden
	}
	masked, _ := json.Marshal(texts) //nolint:errchkjson // texts always can
	return string(masked)
}

// maskLogin masks what stands before the host. In a sound URL an '@' of the path is
// none; in another text it may end a password with odd characters.
func maskLogin(s string) string {
	at := strings.LastIndexByte(s, '@')
	web := strings.HasPrefix(s, "http")
	if u, err := url.Parse(s); at < 0 || web && err == nil && u.User == nil {
		return s
	}
	start := strings.Index(s, "//") + 2
	if start < 2 {
		start = strings.IndexByte(s, ':') + 1
	}
	switch {
	case at <= start || !web && !strings.ContainsRune(s[start:at], ':'):
		return s
	case strings.ContainsAny(s[start:at], "?#"): // the end of a login, or in a parameter
		return s[:start] + Hidden
	default:
		return s[:start] + Hidden + s[at:]
	}
}

func maskParameters(s string) string {
	i := strings.IndexAny(s, "?#")
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:i])
	for i < len(s) {
		sign := s[i]
		b.WriteByte(sign)
		rest := s[i+1:]
		end := strings.IndexAny(rest, "?#&;")
		if end < 0 {
			end = len(rest)
		}
		b.WriteString(maskParameter(rest[:end], sign))
		i += 1 + end
	}
	return b.String()
}

func maskParameter(text string, sign byte) string {
	name, value, named := strings.Cut(text, "=")
	switch {
	case named && value == "", text == "", sign == '#' && name == "sha256" && strings.Trim(value, "0123456789abcdefABCDEF") == "":
		return text
	case named:
		return name + "=" + Hidden
	default:
		return Hidden
	}
}

// Shorten cuts a text to a number of characters that keeps tables readable.
func Shorten(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "..."
}

// Tail is the end of a text, shortened to a few lines.
func Tail(text string) string {
	const lines, width = 5, 200
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	out := all[max(0, len(all)-lines):]
	for i, line := range out {
		out[i] = Shorten(line, width)
	}
	if len(all) > lines {
		out = append([]string{"..."}, out...)
	}
	return strings.Join(out, "\n")
}

// Ranges writes ids in any order as a selector of tasks: 1-31,40.
func Ranges(ids []int64) string {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	var parts []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		part := strconv.FormatInt(ids[i], 10)
		if j > i {
			part += "-" + strconv.FormatInt(ids[j], 10)
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}
