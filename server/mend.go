package server

import (
	"context"
	"slices"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// reindex corrects bucket, deadline, lease and counts of a sound task.
func (k *keeper) reindex(ctx context.Context, i *store.Inspection, now statemachine.Time) error {
	if i.Abandoned {
		return k.lose(ctx, i, now)
	}
	want := i.Deadline(k.opt.grace())
	left := i.Leased() && want < i.Due && want < now && i.Due != statemachine.Never // to its worker, see leave
	right := (left || sameTime(i.Due, want)) && i.InBucket == (i.State == statemachine.Open) && !i.Unwatched && !i.Uncounted
	if right {
		return nil
	}
	changed, err := k.store.Reindex(ctx, &i.Seen, k.opt.grace())
	if changed {
		k.log.Info().Int64("task", i.ID).Str("state", string(i.State)).Msg("adopted into the indices")
	}
	return err
}

// lose takes back a round whose worker has registered anew without it, which
// only damage done by hand can bring about.
func (k *keeper) lose(ctx context.Context, i *store.Inspection, now statemachine.Time) error {
	m, err := statemachine.Decide(&i.Task, statemachine.Occurrence{
		Event: statemachine.Lose, Actor: statemachine.Server, Void: k.store.Void(&i.Task),
	}, now)
	if err != nil {
		return err
	}
	k.log.Warn().Int64("task", i.ID).Str("worker", i.Worker).Msg("nobody runs this task any more; taking it back")
	_, _, err = k.apply(ctx, []store.Order{k.order(&i.Seen, m)})
	return err
}

// sameTime allows for the rounding of a score.
func sameTime(a, b statemachine.Time) bool {
	return a == b || a != statemachine.Never && b != statemachine.Never && max(a-b, b-a) <= 1
}

// mend ends a disagreement between a task and its sets: the hash is right,
// except that a task in the archived set is archived, and that nothing can be
// said about a damaged one.
func (k *keeper) mend(ctx context.Context, i *store.Inspection, now statemachine.Time) error {
	if i.Err != nil {
		done, err := k.store.SetAside(ctx, i, now)
		if done {
			k.log.Error().Err(i.Err).Int64("task", i.ID).Msg("set aside")
		}
		if err == nil {
			k.suspects.clear(i.ID)
		}
		return err
	}
	to := i.State
	if to.Ended() && slices.Contains(i.Listed, statemachine.Archived) {
		to = statemachine.Archived
	}
	done, err := k.store.Relist(ctx, i, to, now)
	if done {
		k.log.Warn().Int64("task", i.ID).Str("state", string(to)).Msg("repaired the lists of a task")
	}
	if err == nil {
		k.suspects.clear(i.ID)
	}
	return err
}

func span(from, to int64) []int64 {
	ids := make([]int64, 0, max(0, to-from+1))
	for id := from; id <= to; id++ {
		ids = append(ids, id)
	}
	return ids
}

func keysOf[V any](m map[int64]V) []int64 {
	ids := make([]int64, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	return ids
}
