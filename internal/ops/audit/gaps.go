package audit

import (
	"context"
	"fmt"
)

// gap is the ids from and to, both among them, that an epoch left out.
type gap struct{ from, to, epoch int64 }

// readGaps reads which ids epochs left out, as far as that is not known yet. There may be millions of them, so
// they are not looked for one by one: those that exist all the same, because a
// client in another language had taken them before, are found in the state sets.
func (a *auditor) readGaps(ctx context.Context) error {
	epochs, err := a.store.Gaps(ctx)
	if err != nil {
		return err
	}
	for i := range epochs {
		e := &epochs[i]
		g := gap{e.FromID + 1, e.ToID, e.Number}
		if n := len(a.gaps); n > 0 {
			g.from = max(g.from, a.gaps[n-1].to+1)
		}
		if g.from > g.to { // nothing new
			continue
		}
		a.gaps = append(a.gaps, g)
		a.report.Account.LeftOut += g.to - g.from + 1
		why := fmt.Sprintf("epoch %d began: up to %d ids were lost with Redis, as far as is known", g.epoch, e.LostIDs())
		if e.Confirmed {
			why = "Redis was started anew or failed over: no loss is known"
		}
		a.remark(Violation{Kind: LeftOut, Text: fmt.Sprintf("ids %d to %d were left out when %s", g.from, g.to, why)})
		if e.SureID < e.FromID {
			a.say(Violation{Kind: Reused, Text: fmt.Sprintf("ids %d to %d may have been given out twice, and mean other tasks than to whom they "+
				"were told first: they were taken after Redis had been started anew or failed over, and before a server looked", e.SureID+1, e.FromID)})
		}
	}
	return nil
}

// leftOut reports whether an epoch left the id out.
func (a *auditor) leftOut(id int64) bool { return a.after(id) != id }

// after is the id, or the first one after the gap in which it is.
func (a *auditor) after(id int64) int64 {
	for _, g := range a.gaps {
		if id >= g.from && id <= g.to {
			id = g.to + 1
		}
	}
	return id
}
