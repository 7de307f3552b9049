package manager

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/statemachine"
)

func timeText(t time.Time, otherwise string) string {
	if t.IsZero() {
		return otherwise
	}
	return short(statemachine.Time(t.UnixMicro()).Text())
}

func durationText(d time.Duration, otherwise string) string {
	switch d {
	case 0:
		return otherwise
	case Forever:
		return statemachine.Forever.Text()
	default:
		return short(statemachine.Duration(max(1, d.Microseconds())).Text())
	}
}

func limitText(n *int, otherwise string) string {
	switch {
	case n == nil:
		return otherwise
	case *n == Unlimited:
		return statemachine.Unlimited.Text()
	default:
		return strconv.Itoa(*n)
	}
}

// failOnText is how a record says it: the default as nothing.
func failOnText(f string) string {
	if f == FailOnAny {
		return ""
	}
	return f
}

// short leaves out zeros after the decimal point: people read these numbers.
func short(seconds string) string {
	if !strings.Contains(seconds, ".") {
		return seconds
	}
	return strings.TrimSuffix(strings.TrimRight(seconds, "0"), ".")
}

// withRandomOffset adds up to a second, so that tasks opened with the same
// start run in mixed order (TDF document), but not beyond end.
func withRandomOffset(start, end string) string {
	from, err := statemachine.ParseTime(start)
	if err != nil {
		return start // validated before
	}
	room := int64(statemachine.Second)
	if last, err := statemachine.ParseTime(end); err == nil {
		room = min(room, int64(last.Sub(from)))
	}
	if room <= 0 {
		return start
	}
	return (from + statemachine.Time(rand.Int64N(room))).Text()
}

func orText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func labelsText(labels []string, otherwise string) string {
	if labels == nil {
		return otherwise
	}
	return strings.Join(labels, ",")
}

func resourcesText(r map[string]int, otherwise string) string {
	if r == nil {
		return otherwise
	}
	return route.Resources(r).Text()
}

func intText(n *int, otherwise string) string {
	if n == nil {
		return otherwise
	}
	return strconv.Itoa(*n)
}

func floatText(f *float64, otherwise string) string {
	if f == nil {
		return otherwise
	}
	return strconv.FormatFloat(*f, 'f', -1, 64)
}

func codesText(codes []int, otherwise string) string {
	if codes == nil {
		return otherwise
	}
	texts := make([]string, len(codes))
	for i, n := range codes {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}

func delayText(d time.Duration, otherwise string) string {
	if d == NoDelay {
		return "0"
	}
	return durationText(d, otherwise)
}
