package audit

import (
	"context"
	"fmt"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/timing"
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
		off := now.Opened - a.accounted(&now)
		if off == 0 || !a.report.OK() || a.fix != nil {
			return nil
		}
		if look == maxLooks {
			text := fmt.Sprintf("%d ids were given out, and the sets account for %d", now.Opened, now.Opened-off)
			a.say(Violation{Kind: Balance, Text: text})
			return nil
		}
		if !timing.Pause(ctx, a.pause) {
			return ctx.Err()
		}
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
	sum := a.report.Account.LeftOut + a.report.Account.Unwritten
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
