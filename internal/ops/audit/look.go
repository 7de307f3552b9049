package audit

import (
	"context"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// sight is one task as seen in one look.
type sight struct {
	store.Inspection
	// stamps are the fields of the rounds that must be there; see fieldsOf.
	stamps map[string]string
	aside  *store.Aside
	// adopted says that a server has had the task, so its indices must be there.
	adopted bool
	// unlisted says that the bucket of the task is not on the list of buckets.
	unlisted bool
	// purged says that it was archived and has left Redis.
	purged  bool
	now     statemachine.Time
	grace   statemachine.Duration
	history *history
}

// look reads tasks with what the audit needs of them.
func (a *auditor) look(ctx context.Context, ids []int64) ([]sight, error) {
	found, now, err := a.store.Inspect(ctx, ids)
	if err != nil {
		return nil, err
	}
	stamps, err := a.store.Fields(ctx, ids, stampFields(found)...)
	if err != nil {
		return nil, err
	}
	if err := a.readAsides(ctx, found); err != nil {
		return nil, err
	}
	if err := a.learnBuckets(ctx, found); err != nil {
		return nil, err
	}
	if err := a.learnPurged(ctx, found); err != nil {
		return nil, err
	}
	sights := make([]sight, len(found))
	for i := range found {
		sights[i] = sight{
			Inspection: found[i], stamps: stamps[i], now: now, grace: a.grace, history: &a.history,
			adopted: found[i].ID <= a.adopted, unlisted: !a.buckets[found[i].Bucket.Name()],
			purged: found[i].Absent() && a.isPurged(found[i].ID),
		}
		if aside, ok := a.asides[found[i].ID]; ok {
			sights[i].aside = &aside
		}
	}
	return sights, nil
}

// readAsides reads the tasks that were set aside, if there is any need.
func (a *auditor) readAsides(ctx context.Context, found []store.Inspection) error {
	for i := range found {
		if found[i].Err == nil && len(found[i].Listed) > 0 {
			continue
		}
		list, err := a.store.Asides(ctx)
		for _, aside := range list {
			a.asides[aside.ID] = aside
		}
		return err
	}
	return nil
}

// mostRounds bounds how many rounds of a task are looked at; a spoilt round
// field may be any number.
const mostRounds = 100

// roundFields are what is read of each round beside the stamps of states.
var roundFields = []string{"worker", "claim", "end", string(statemachine.StampTimeout), string(statemachine.StampFailure)}

// stampFields are the fields that may have to be there, for any of the tasks.
func stampFields(found []store.Inspection) []string {
	last := 0
	for i := range found {
		last = max(last, min(found[i].Round, mostRounds-1))
	}
	fields := make([]string, 0, 2+(len(roundFields)+len(statemachine.States()))*(last+1))
	fields = append(fields, "state", "plan")
	for n := range last + 1 {
		for _, name := range roundFields {
			fields = append(fields, statemachine.RoundField(n, name))
		}
		for _, state := range statemachine.States() {
			fields = append(fields, statemachine.RoundField(n, string(state)))
		}
	}
	return fields
}

// readBuckets reads the list of buckets: a task that waits in one that is not on it
// is found by no worker.
func (a *auditor) readBuckets(ctx context.Context) error {
	list, err := a.store.Buckets(ctx)
	a.buckets = make(map[string]bool, len(list))
	for _, b := range list {
		a.buckets[b.Name()] = true
	}
	return err
}

// learnBuckets reads the list anew if a task waits in a bucket that was not on it.
func (a *auditor) learnBuckets(ctx context.Context, found []store.Inspection) error {
	for i := range found {
		if f := &found[i]; f.Err == nil && f.State == statemachine.Open && !a.buckets[f.Bucket.Name()] {
			return a.readBuckets(ctx)
		}
	}
	return nil
}
