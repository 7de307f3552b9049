package doctor

import (
	"fmt"
	"time"
)

// Bounds of how far the clocks may be apart. TDF uses that of Redis alone; people
// and logs use that of the host.
const (
	skewWarn = time.Second
	skewFail = 5 * time.Minute
)

func judgeClock(f *Facts) []Finding {
	const check = "clock"
	skew := f.Server.Skew.Abs()
	text := fmt.Sprintf("clock of Redis against this host's: %+.3f s, give or take %.3f s", f.Server.Skew.Seconds(), f.Server.Margin.Seconds())
	const remedy = "run a time service (chrony, systemd-timesyncd) on both hosts; start_after and end_before mean the clock of Redis"
	switch {
	case skew > skewFail+f.Server.Margin:
		return fail(check, text, remedy)
	case skew > skewWarn+f.Server.Margin:
		return warn(check, text, remedy)
	default:
		return ok(check, text)
	}
}
