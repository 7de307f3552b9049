package route

import (
	"errors"
	"strings"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

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

// secondsText writes seconds without zeros at their end: people read them.
func secondsText(d statemachine.Duration) string {
	text := d.Text()
	if !strings.Contains(text, ".") {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// named puts the name of a field into an error of this package or of
// statemachine.
func named(field string, err error) error {
	if fe, ok := errors.AsType[*statemachine.FieldError](err); ok {
		return bad(field, fe.Value, fe.Want)
	}
	return err
}

// unknownKey is the error for a name that is none of those known.
func unknownKey(name string, known []string) error {
	if near := Nearest(strings.ReplaceAll(strings.ToLower(name), "-", "_"), known); near != "" {
		return bad("name", name, "known; did you mean "+near+"?")
	}
	return bad("name", name, "known; known are "+strings.Join(known, ", "))
}
