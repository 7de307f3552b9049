package control

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxText     = 200
	maxWarnings = 10
	// maxShown is how much of a strange line a warning quotes.
	maxShown = 60
)

// parse takes whole lines; the rest behind the last line feed is left for later.
func (r *Reader) parse(text string) {
	for line := range strings.Lines(text) {
		line, whole := strings.CutSuffix(line, "\n")
		line = strings.TrimSpace(line)
		if !whole || line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		switch key = strings.TrimSpace(key); {
		case !ok:
			r.warn("line %q is not of the form key=value", clean(line, maxShown))
		case key == "progress":
			r.take(value)
		case key == resultKey: // at the end, by Result
		default:
			r.warn("unknown key %q", clean(key, maxShown))
		}
	}
}

func (r *Reader) take(value string) {
	p, err := parseProgress(value)
	if err != nil {
		r.warn("progress=%s: %v", clean(value, maxShown), err)
		return
	}
	r.progress = p
}

func parseProgress(value string) (Progress, error) {
	number, text, _ := strings.Cut(strings.TrimSpace(value), " ")
	digits, percent := strings.CutSuffix(number, "%")
	part, err := strconv.ParseFloat(digits, 64)
	if percent {
		part /= 100
	}
	// Written so that NaN is refused as well.
	if err != nil || !(part >= 0 && part <= 1) {
		return Progress{}, fmt.Errorf("want a part from 0 to 1 or a percentage, as in 0.4 or 40%%, not %q", clean(number, maxShown))
	}
	return Progress{Part: math.Abs(part), Text: clean(text, maxText)}, nil
}

// clean makes text fit for a terminal and a record: no control or invisible
// characters, no broken UTF-8, at most limit bytes, cut between characters.
func clean(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\u00a0':
			return ' '
		case r == utf8.RuneError || unicode.IsPrint(r):
			return r
		}
		return -1
	}, text)
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\ufffd"))
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return strings.TrimSpace(text[:limit])
}
