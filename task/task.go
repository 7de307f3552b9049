package task

import (
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// Moment is a time on Redis' clock, in UTC; the zero time for 0 and Never, which have not come.
func Moment(t statemachine.Time) time.Time {
	if t == 0 || t == statemachine.Never {
		return time.Time{}
	}
	return time.UnixMicro(int64(t)).UTC()
}

// ParseMoment is the Moment of a text; the zero time for what is none.
func ParseMoment(text string) time.Time {
	t, err := statemachine.ParseTime(text)
	if err != nil || t == statemachine.Never {
		return time.Time{}
	}
	return Moment(t)
}
