package doctor

import (
	"fmt"
	"slices"
	"time"

	"github.com/tdf-go/tdf/internal/store"
)

// judgeHistory looks at whether Redis has lost what it acknowledged.
func judgeHistory(f *Facts) []Finding {
	const check = "history"
	found := ok(check, fmt.Sprintf("epoch %d: nothing is known to be lost", f.Sizes.Epoch))
	epochs := slices.DeleteFunc(slices.Clone(f.Gaps), func(e store.Epoch) bool { return e.Confirmed })
	if n := len(epochs); n > 0 {
		last := &epochs[n-1]
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
	for i := range f.Gaps {
		if e := &f.Gaps[i]; e.SureID < e.FromID {
			found = append(found, fail(check, fmt.Sprintf("ids %d to %d may have been given out twice: "+
				"they were taken after Redis had been started anew or failed over, and before a server looked", e.SureID+1, e.FromID),
				"compare these tasks with what those who opened them have noted; clients that take ids by INCR cannot be held back")...)
		}
	}
	if f.Sizes.Unconfirmed && !f.Sizes.Behind {
		found = append(found, fail(check, "Redis was started anew or failed over, and no server has confirmed it: no task can be opened",
			"start tdf-server, which does so within seconds")...)
	}
	return found
}
