package doctor

import (
	"fmt"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
)

// Bounds of how far the clocks may be apart. TDF uses that of Redis alone; people
// and logs use that of the host.
const (
	skewWarn = time.Second
	skewFail = 5 * time.Minute
)

// stepRecent is for how long a step of the clock is a warning.
const stepRecent = 24 * time.Hour

func judgeClock(f *Facts) []Finding {
	return append(judgeSkew(f), judgeStep(f)...)
}

// judgeStep names the last step of the clock of Redis.
func judgeStep(f *Facts) []Finding {
	const check = "clock"
	ago := timing.ToStd(f.Now.Sub(f.Step.At))
	if f.Step.Ahead < time.Second && (f.Step.At == 0 || ago > stepRecent) {
		return nil
	}
	text := "the clock of Redis is behind what it has shown before"
	if f.Step.At != 0 {
		way := "forward"
		if f.Step.By < 0 {
			way = "back"
		}
		text = fmt.Sprintf("the clock of Redis has stepped %s by %v, %v ago",
			way, f.Step.By.Abs().Round(100*time.Millisecond), ago.Round(time.Second))
	}
	text += fmt.Sprintf("; stamps are %v ahead of it", f.Step.Ahead.Round(100*time.Millisecond))
	return warn(check, text, "run a time service that slews the clock (chrony, systemd-timesyncd), on the hosts of all replicas too")
}

func judgeSkew(f *Facts) []Finding {
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
