package why

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// moment is a time for people.
func moment(t statemachine.Time) string {
	if t == statemachine.Never {
		return "never"
	}
	return time.UnixMicro(int64(t)).UTC().Format("2006-01-02 15:04:05") + " UTC"
}

// span is a length of time for people: whole seconds above ten of them.
func span(d statemachine.Duration) string {
	const longest = statemachine.Duration(1<<63-1) / 1000
	if d >= longest {
		return "forever"
	}
	text := time.Duration(d) * time.Microsecond
	switch {
	case text >= 10*time.Second || text <= -10*time.Second:
		return text.Round(time.Second).String()
	default:
		return text.Round(time.Millisecond).String()
	}
}

// since adds when something began and how long ago that is, if it is known.
func since(now, t statemachine.Time) string {
	if t == 0 {
		return ""
	}
	return " since " + moment(t) + " (" + span(now.Sub(t)) + ")"
}

// saying adds the words of somebody, if there are any.
func saying(words string) string {
	if words == "" {
		return ""
	}
	return ": " + words
}

// by adds a name, if there is one.
func by(name string) string {
	if name == "" {
		return ""
	}
	return " by " + name
}

// things is a number and what is counted.
func things(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}

// mostNamed is how many of a list a text names.
const mostNamed = 8

// some is a list that does not grow long.
func some(words []string) string {
	if len(words) > mostNamed {
		return strings.Join(words[:mostNamed], ", ") + fmt.Sprintf(" and %d more", len(words)-mostNamed)
	}
	return strings.Join(words, ", ")
}

// counts is "a: 2, b: 1", the names sorted, without zeros.
func counts[N int | int64](by map[string]N) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if by[name] > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", name, by[name]))
		}
	}
	return some(parts)
}
