package timing

import (
	"math"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// longest is the largest duration of the system, about 292 years, which stands
// for ever.
const longest time.Duration = math.MaxInt64

// FromStd turns a duration of the system into one of the rules, which counts
// microseconds. The longest one becomes Forever, and less than a microsecond
// but not 0 becomes one: no wait may turn into none.
func FromStd(d time.Duration) statemachine.Duration {
	switch {
	case d == longest:
		return statemachine.Forever
	case d > 0:
		return max(1, statemachine.Duration(d.Microseconds()))
	default:
		return statemachine.Duration(d.Microseconds())
	}
}

// ToStd is the way back. What the system cannot count becomes the longest
// duration it can, with the same sign.
func ToStd(d statemachine.Duration) time.Duration {
	const most = statemachine.Duration(longest / time.Microsecond)
	switch {
	case d > most:
		return longest
	case d < -most:
		return -longest
	default:
		return time.Duration(d) * time.Microsecond
	}
}
