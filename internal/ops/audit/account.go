package audit

import (
	"context"
	"fmt"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
)

// account compares what was found task by task with what Redis counts at one
// moment: the ids that were given out are the sum of the state sets, of those that were set
// aside, left out, or taken and never written. Ids that were given out since are audited first.
// Where there are violations they are what is wrong, and nothing is to be gained
// from the sum.
func (a *auditor) account(ctx context.Context) error {
	for look := 1; ; look++ {
		now, err := a.store.Census(ctx)
		if err != nil {
			return err
		}
		if err := a.catchUp(ctx, now.Opened); err != nil {
			return err
		}
		if err := a.readPurged(ctx); err != nil {
			return err
		}
		off, ranges := now.Opened-a.accounted(&now), a.purgedIDs()
		if off == 0 && ranges == now.Purged || !a.report.OK() || a.fix != nil {
			a.settlePurged()
			return nil
		}
		if look == maxLooks {
			a.unbalanced(&now, off, ranges)
			return nil
		}
		if !timing.Pause(ctx, a.pause) {
			return ctx.Err()
		}
	}
}

// unbalanced says what does not add up.
func (a *auditor) unbalanced(now *store.Census, off, ranges int64) {
	if off != 0 {
		text := fmt.Sprintf("%d ids were given out, and the sets account for %d", now.Opened, now.Opened-off)
		a.say(Violation{Kind: Balance, Text: text})
	}
	if ranges != now.Purged {
		text := fmt.Sprintf("%d archived tasks were counted as purged, but the ids of %d are noted", now.Purged, ranges)
		a.say(Violation{Kind: Balance, Text: text})
	}
}

// catchUp audits the ids up to last that were given out since the walk.
func (a *auditor) catchUp(ctx context.Context, last int64) error {
	first := a.report.TaskID + 1
	a.report.TaskID = max(last, a.report.TaskID)
	a.report.Account.Opened = a.report.TaskID
	if last < first {
		return nil
	}
	if err := a.readGaps(ctx); err != nil {
		return err
	}
	if err := a.extend(ctx); err != nil {
		return err
	}
	return a.between(ctx, first, last)
}

// accounted is how many ids Redis has somewhere, and how many are known to be
// nowhere.
func (a *auditor) accounted(now *store.Census) int64 {
	sum := a.report.Account.LeftOut - a.purgedLeftOut() + a.report.Account.Unwritten + now.Purged
	for _, n := range now.Listed {
		sum += n
	}
	for _, id := range now.Aside {
		if id > 0 && id <= now.Opened && !a.leftOut(id) {
			sum++
		}
	}
	return sum
}
