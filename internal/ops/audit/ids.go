package audit

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/upkeep"
)

// account compares what was found task by task with what Redis counts at one
// moment: the ids that were given out are the sum of the state sets, of those that were set
// aside, left out, or taken and never written. Ids that were given out since are audited first.
// With other violations the sum says nothing more, and is not checked.
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
		if off == 0 && ranges == now.Purged || !a.report.OK() {
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
func (a *auditor) unbalanced(now *upkeep.Census, off, ranges int64) {
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
func (a *auditor) accounted(now *upkeep.Census) int64 {
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

// readPurged reads which ids have left Redis. An id never comes back, so what was read stays true.
func (a *auditor) readPurged(ctx context.Context) (err error) {
	a.purged, err = a.store.PurgedAll(ctx)
	return err
}

// learnPurged reads that anew if an id is nowhere and was not known to have left.
func (a *auditor) learnPurged(ctx context.Context, found []upkeep.Inspection) error {
	gone := func(i upkeep.Inspection) bool { return i.Absent() && !a.isPurged(i.ID) }
	if slices.ContainsFunc(found, gone) {
		return a.readPurged(ctx)
	}
	return nil
}

// purgedFrom is the place of the first range that ends at the id or after it.
func (a *auditor) purgedFrom(id int64) int {
	return sort.Search(len(a.purged), func(i int) bool { return a.purged[i].Last >= id })
}

func (a *auditor) isPurged(id int64) bool {
	i := a.purgedFrom(id)
	return i < len(a.purged) && a.purged[i].First <= id
}

// skip returns the first id, from id on, that the audit has to read: neither left out by an epoch nor gone. It counts those
// gone up to last.
func (a *auditor) skip(id, last int64) int64 {
	for id <= last {
		if next := a.after(id); next != id {
			id = next
			continue
		}
		i := a.purgedFrom(id)
		if i == len(a.purged) || a.purged[i].First > id {
			return id
		}
		to := min(a.purged[i].Last, last)
		for _, g := range a.gaps {
			if g.from > id {
				to = min(to, g.from-1)
			}
		}
		a.report.Account.Purged += to - id + 1
		id = to + 1
	}
	return id
}

// purgedIDs is how many ids have left Redis.
func (a *auditor) purgedIDs() (n int64) {
	for _, r := range a.purged {
		n += r.Last - r.First + 1
	}
	return n
}

// purgedLeftOut is how many of them are ids that an epoch left out: a client in another language had taken these before.
func (a *auditor) purgedLeftOut() (n int64) {
	for _, g := range a.gaps {
		for i := a.purgedFrom(g.from); i < len(a.purged) && a.purged[i].First <= g.to; i++ {
			n += min(a.purged[i].Last, g.to) - max(a.purged[i].First, g.from) + 1
		}
	}
	for id := range a.there {
		if a.isPurged(id) {
			n--
		}
	}
	return n
}

// settlePurged counts those as gone and not as left out.
func (a *auditor) settlePurged() {
	n := a.purgedLeftOut()
	a.report.Account.LeftOut -= n
	a.report.Account.Purged += n
}

// backFromGone looks for ids that have left Redis and are listed all the same.
func (a *auditor) backFromGone(ctx context.Context, x upkeep.Index, ids []int64) error {
	ids = slices.DeleteFunc(ids, func(id int64) bool { return !a.isPurged(id) })
	if len(ids) == 0 {
		return nil
	}
	found, _, err := a.store.Inspect(ctx, ids)
	if err != nil {
		return err
	}
	for i := range found {
		if !found[i].Absent() {
			a.say(sprint(found[i].ID, Balance, "listed in %s, but it was counted as purged", x))
		}
	}
	return nil
}

// learnGone is learnPurged for tasks of a plan.
func (a *auditor) learnGone(ctx context.Context, found []plans.Planned) error {
	gone := func(t plans.Planned) bool { return t.State == "" && !a.isPurged(t.ID) }
	if slices.ContainsFunc(found, gone) {
		return a.readPurged(ctx)
	}
	return nil
}
