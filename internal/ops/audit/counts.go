package audit

import (
	"context"
	"slices"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// counts looks for rounds that take a place which limits count, and are none. How
// many there are is not judged: a limit may have been lowered.
func (a *auditor) counts(ctx context.Context) error {
	suspects, err := a.miscounted(ctx)
	for look := 1; err == nil && len(suspects) > 0 && look < looks; look++ {
		if !timing.Pause(ctx, a.pause) {
			return ctx.Err()
		}
		var again []store.CountedRound
		again, err = a.miscounted(ctx)
		suspects = slices.DeleteFunc(suspects, func(c store.CountedRound) bool { return !slices.Contains(again, c) })
	}
	for _, c := range suspects {
		v := sprint(c.ID, Index, "counted as running in queue %q on node %q (empty: any), but it does not run there", c.Queue, c.Node)
		a.say(v)
		if a.fix != nil {
			a.fix.uncounted = append(a.fix.uncounted, v)
		}
	}
	return err
}

// miscounted are the entries of tasks that do not run there now.
func (a *auditor) miscounted(ctx context.Context) ([]store.CountedRound, error) {
	all, err := a.store.Counted(ctx)
	if err != nil {
		return nil, err
	}
	var wrong []store.CountedRound
	for part := range slices.Chunk(all, chunk) {
		ids := make([]int64, len(part))
		for i := range part {
			ids[i] = part[i].ID
		}
		found, _, err := a.store.Inspect(ctx, ids)
		if err != nil {
			return nil, err
		}
		for i := range found {
			if !runsThere(&found[i].Seen, part[i]) && !slices.Contains(wrong, part[i]) {
				wrong = append(wrong, part[i])
			}
		}
	}
	return wrong, nil
}

func runsThere(t *store.Seen, c store.CountedRound) bool {
	return t.Err == nil && t.State == statemachine.Running && t.Current.Claim != "" &&
		(c.Queue == "" || c.Queue == t.Bucket.QueueName()) && (c.Node == "" || c.Node == t.Node)
}
