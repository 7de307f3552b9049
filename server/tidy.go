package server

import (
	"context"
	"slices"
	"time"
)

// recount takes out of the counts that limits are enforced by what does not run
// any more, because a foreign client has moved it.
func (k *keeper) recount(ctx context.Context) error {
	gone, err := k.store.Recount(ctx)
	if gone > 0 {
		k.log.Info().Int("rounds", gone).Msg("took rounds that are over out of the counts")
	}
	return err
}

// pruneInterval is how long a bucket is empty at least before it is taken off
// the list.
const pruneInterval = time.Minute

// prune takes the buckets off the list that were empty the last time as well.
func (k *keeper) prune(ctx context.Context) error {
	empty, err := k.store.EmptyBuckets(ctx)
	if err != nil {
		return err
	}
	twice := slices.DeleteFunc(slices.Clone(empty), func(name string) bool { return !slices.Contains(k.empty, name) })
	k.empty = empty
	_, err = k.store.Prune(ctx, twice)
	return err
}
