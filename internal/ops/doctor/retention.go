package doctor

import (
	"fmt"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

const (
	// overstay is how long an archived task that should have left may still be there: servers may have much to do.
	overstay = 10 * time.Minute
	// turnSilence is how long there may be no server whose turn it is to let tasks go; one that is at work renews it each second.
	turnSilence = 60 * statemachine.Second
)

// rules are the setting as the store wants it.
func rules(setting []config.Retention) []store.Retention {
	all := make([]store.Retention, len(setting))
	for i, r := range setting {
		all[i] = store.Retention{Outcome: r.Outcome, Age: r.Age, Most: r.Most}
	}
	return all
}

// judgeRetention looks at whether archived tasks leave Redis as they should.
func judgeRetention(f *Facts) []Finding {
	const check = "retention"
	active := f.Sizes.PurgeTurn != 0 && f.Now.Sub(f.Sizes.PurgeTurn) <= turnSilence
	wanted := f.Config != nil && len(f.Config.ArchiveRetention) > 0
	switch {
	case f.Sizes.ArchiveError != "":
		return fail(check, "archived tasks cannot be written to the archive, and stay in Redis: "+f.Sizes.ArchiveError,
			"make room there, or mount the disk again; servers try again by themselves")
	case wanted && !active:
		return warn(check, "this configuration has archive_retention, and no server lets archived tasks go now",
			"give all servers the same [server] archive_retention, and start one")
	case wanted && f.Overstayed > 0:
		return warn(check, fmt.Sprintf("%d archived tasks should have left Redis more than %v ago", f.Overstayed, overstay),
			"servers cannot keep up, or some have another archive_retention: look into their logs")
	case f.Config != nil && !wanted && active:
		return warn(check, "a server lets archived tasks go, and archive_retention is not in this configuration",
			"give all servers the same [server] archive_retention")
	case active:
		return ok(check, "a server lets archived tasks go when their time has come")
	default:
		return ok(check, "archived tasks stay in Redis")
	}
}
