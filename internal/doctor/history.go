package doctor

import (
	"fmt"
	"time"
)

// judgeHistory looks at whether Redis has lost what it acknowledged.
func judgeHistory(f *Facts) []Finding {
	const check = "history"
	found := ok(check, fmt.Sprintf("epoch %d: nothing is known to be lost", f.Sizes.Epoch))
	if n := len(f.Epochs); n > 0 {
		last := &f.Epochs[n-1]
		found = warn(check, fmt.Sprintf(
			"epoch %d: Redis has lost what it had acknowledged, last seen at %s: at least %d changes; "+
				"ids %d to %d were left out, some of which may have been given out",
			f.Sizes.Epoch, time.UnixMicro(int64(last.At)).UTC().Format(time.DateTime+" MST"), last.Lost, last.FromID+1, last.ToID),
			"open again what is missing (tdf-manager verify compares); see durability in docs/OPERATIONS.md for how to lose less")
	}
	if f.Sizes.Behind {
		found = append(found, fail(check, "Redis has gone back in time, and no server has opened a new epoch yet: every program waits",
			"start tdf-server; its log says what was lost")...)
	}
	return found
}
