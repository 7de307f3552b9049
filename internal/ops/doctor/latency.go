package doctor

import (
	"fmt"
	"slices"
	"time"
)

// Bounds of a PING. A claim is one round trip.
const (
	medianWarn = 20 * time.Millisecond
	worstWarn  = 250 * time.Millisecond
	// manySlow is how many slow calls are more than a trifle.
	manySlow = 32
)

func judgeLatency(f *Facts) []Finding {
	const check = "latency"
	if len(f.Server.Pings) == 0 {
		return unknown(check, "latency", "PING")
	}
	sorted := slices.Sorted(slices.Values(f.Server.Pings))
	median, worst := sorted[len(sorted)/2], sorted[len(sorted)-1]
	text := fmt.Sprintf("PING takes %v (median of %d), at most %v", median.Round(time.Microsecond), len(sorted), worst.Round(time.Microsecond))
	found := ok(check, text)
	if median > medianWarn || worst > worstWarn {
		found = warn(check, text, "put Redis nearer; look there for swapping, huge pages (redis-cli --intrinsic-latency 10) and a busy host")
	}
	switch {
	case f.Server.SlowCalls < 0:
		found = append(found, unknown(check, "slow log", "SLOWLOG LEN")...)
	case f.Server.SlowCalls >= manySlow:
		found = append(found, warn(check, fmt.Sprintf("%d calls in the slow log", f.Server.SlowCalls),
			"redis-cli SLOWLOG GET says which; KEYS and the like of other programs hold everybody up")...)
	}
	return found
}
