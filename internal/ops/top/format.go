package top

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tdf-go/tdf/internal/base/clean"
)

const (
	// none stands where there is no value.
	none = "-"
	// clock is how moments are written.
	clock = "15:04:05"
	// maxText bounds a cell, in bytes: no terminal is wider, and a task may
	// report an error of any length.
	maxText = 500
)

// text makes a text from elsewhere fit for a cell.
func text(s string) string {
	if s == "" {
		return none
	}
	return clean.Line(s, maxText)
}

// firstLine is the first line of a text that is not blank.
func firstLine(s string) string {
	s = strings.TrimSpace(s)
	if end := strings.IndexAny(s, "\r\n"); end >= 0 {
		s = s[:end]
	}
	return text(s)
}

// limit writes a limit.
func limit(n int) string {
	if n < 0 {
		return none
	}
	return strconv.Itoa(n)
}

// age writes how long before now a moment was; one that has yet to come is now.
func age(now, then time.Time) string {
	if then.IsZero() {
		return none
	}
	return span(now.Sub(then))
}

// span writes a duration in its two largest units.
func span(d time.Duration) string {
	s := max(0, int64(d/time.Second))
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	default:
		return fmt.Sprintf("%dd%02dh", s/86400, s%86400/3600)
	}
}

// String writes a rate with as many digits as its size deserves.
func (r rate) String() string {
	switch {
	case !r.known:
		return none
	case r.perSecond == 0:
		return "0"
	case r.perSecond < 0.1:
		return fmt.Sprintf("%.3f", r.perSecond)
	case r.perSecond < 100:
		return fmt.Sprintf("%.1f", r.perSecond)
	default:
		return fmt.Sprintf("%.0f", r.perSecond)
	}
}
