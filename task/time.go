package task

import (
	"math"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/statemachine"
)

// Stamp is the inverse of [Moment].
func Stamp(t time.Time) statemachine.Time {
	if t.IsZero() {
		return 0
	}
	return statemachine.Time(t.UnixMicro())
}

// Seconds is a length of time, which JSON has as a number of seconds; the longest is null.
type Seconds time.Duration

const forever Seconds = math.MaxInt64

// String is that of time.Duration.
func (s Seconds) String() string { return time.Duration(s).String() }

// MarshalJSON writes a number of seconds, 0 for a negative length.
func (s Seconds) MarshalJSON() ([]byte, error) {
	if s == forever {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, time.Duration(max(0, s)).Seconds(), 'f', -1, 64), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*s = forever
		return nil
	}
	d, err := statemachine.ParseDuration(string(text))
	if err != nil {
		return err
	}
	*s = secondsOf(d)
	return nil
}

// secondsOf is a length of time of a record.
func secondsOf(d statemachine.Duration) Seconds { return Seconds(timing.ToStd(d)) }

// micros is the way back from secondsOf.
func (s Seconds) micros() statemachine.Duration { return timing.FromStd(time.Duration(s)) }
