package audit

import (
	"context"
	"slices"
	"sort"

	"github.com/tdf-go/tdf/internal/store"
)

// readPurged reads which ids have left Redis. An id never comes back, so what was read stays true.
func (a *auditor) readPurged(ctx context.Context) (err error) {
	a.purged, err = a.store.PurgedAll(ctx)
	return err
}

// learnPurged reads that anew if an id is nowhere and was not known to have left.
func (a *auditor) learnPurged(ctx context.Context, found []store.Inspection) error {
	gone := func(i store.Inspection) bool { return i.Absent() && !a.isPurged(i.ID) }
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

// skip is the first id from id on that is to be looked at: not left out by an epoch, and not gone. What is gone up to last it
// counts.
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
func (a *auditor) backFromGone(ctx context.Context, x store.Index, ids []int64) error {
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
func (a *auditor) learnGone(ctx context.Context, found []store.Planned) error {
	gone := func(t store.Planned) bool { return t.State == "" && !a.isPurged(t.ID) }
	if slices.ContainsFunc(found, gone) {
		return a.readPurged(ctx)
	}
	return nil
}
