package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store/tasks"
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
		balanced := off == 0 && ranges == now.Purged || !a.report.OK()
		if !balanced && look == maxLooks {
			a.unbalanced(&now, off, ranges)
		}
		if balanced || look == maxLooks {
			a.settle()
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
		a.say(sprint(0, Balance, "%d ids were given out, and the sets account for %d", now.Opened, now.Opened-off))
	}
	if ranges != now.Purged {
		a.say(sprint(0, Balance, "%d archived tasks were counted as purged, but the ids of %d are noted", now.Purged, ranges))
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

// readGaps reads which ids epochs left out, as far as that is not known yet. There may be millions of them, so
// they are not read one by one: those that exist, because a client in another
// language had taken them before, are found in the state sets.
func (a *auditor) readGaps(ctx context.Context) error {
	epochs, err := a.store.Gaps(ctx)
	if err != nil {
		return err
	}
	for i := range epochs {
		e := &epochs[i]
		g := tasks.Span{First: e.FromID + 1, Last: e.ToID}
		if n := len(a.gaps); n > 0 {
			g.First = max(g.First, a.gaps[n-1].Last+1)
		}
		if g.First > g.Last { // nothing new
			continue
		}
		a.gaps = append(a.gaps, g)
		a.report.Account.LeftOut += g.Last - g.First + 1
		why := fmt.Sprintf("epoch %d began: up to %d ids were lost with Redis, as far as is known", e.Number, e.LostIDs())
		if e.Confirmed {
			why = "Redis was started anew or failed over: no loss is known"
		}
		a.remark(sprint(0, LeftOut, "ids %d to %d were left out when %s", g.First, g.Last, why))
		if e.SureID < e.FromID {
			a.say(sprint(0, Reused, "ids %d to %d may have been given out twice, and mean other tasks than to whom they "+
				"were told first: they were taken after Redis had been started anew or failed over, and before a server looked", e.SureID+1, e.FromID))
		}
	}
	return nil
}

// readPurged reads which ids have left Redis. An id never comes back, so what was read stays true.
func (a *auditor) readPurged(ctx context.Context) (err error) {
	a.purged, err = a.store.PurgedAll(ctx)
	return err
}

// learnPurged reads again which ids have left Redis, unless all of the absent ones are known.
func (a *auditor) learnPurged(ctx context.Context, absent []int64) error {
	if slices.ContainsFunc(absent, func(id int64) bool { return !a.isPurged(id) }) {
		return a.readPurged(ctx)
	}
	return nil
}

func (a *auditor) isPurged(id int64) bool { return in(a.purged, id) != nil }

func (a *auditor) leftOut(id int64) bool { return in(a.gaps, id) != nil }

// in is that one of some ranges, in order, that has the id; nil if none has.
func in(ranges []tasks.Span, id int64) *tasks.Span {
	i, _ := slices.BinarySearchFunc(ranges, id, func(r tasks.Span, id int64) int { return cmp.Compare(r.Last, id) })
	if i == len(ranges) || ranges[i].First > id {
		return nil
	}
	return &ranges[i]
}

// skip returns the first id, from id on, that the audit has to read: neither left out by an epoch nor gone.
func (a *auditor) skip(id int64) int64 {
	for {
		r := cmp.Or(in(a.gaps, id), in(a.purged, id))
		if r == nil {
			return id
		}
		id = r.Last + 1
	}
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
		for _, r := range a.purged {
			n += max(0, min(r.Last, g.Last)-max(r.First, g.First)+1)
		}
	}
	for id := range a.there {
		if a.isPurged(id) {
			n--
		}
	}
	return n
}

// settle counts as purged, and not as left out, what an epoch left out and has left Redis, and with that all ids of which the walk
// has found nothing else.
func (a *auditor) settle() {
	n := &a.report.Account
	n.LeftOut -= a.purgedLeftOut()
	n.Purged = n.Opened - n.InStates - n.DeadLetters - n.LeftOut - n.Unwritten - n.Missing
}

// backFromGone looks for ids that have left Redis but are still listed.
func (a *auditor) backFromGone(ctx context.Context, x upkeep.Index, ids []int64) error {
	ids = slices.DeleteFunc(ids, func(id int64) bool { return !a.isPurged(id) })
	if len(ids) == 0 {
		return nil
	}
	found, _, err := a.store.Inspect(ctx, ids)
	if err != nil {
		return err
	}
	for i, id := range ids {
		if !found[i].Absent() {
			a.say(sprint(id, Balance, "listed in %s, but it was counted as purged", x))
		}
	}
	return nil
}
