package store

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/statemachine"
)

// Census is what all ids that were given out have become, as Redis had it at one
// moment.
type Census struct {
	// Opened is the newest id.
	Opened int64
	// Listed is how many ids each state set lists.
	Listed map[statemachine.State]int64
	// Aside are the ids that were set aside.
	Aside []int64
	// Purged is how many archived tasks have left Redis.
	Purged int64
}

// Census counts ids and sets at one moment. What the sets list beyond the ids
// that were given out is counted as well.
func (s *Store) Census(ctx context.Context) (Census, error) {
	all := statemachine.States()
	sizes := make([]*redis.IntCmd, len(all))
	var last *redis.StringCmd
	var aside, purged *redis.StringSliceCmd
	_, err := s.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		last, aside = p.Get(ctx, s.keys.taskID()), p.HKeys(ctx, s.keys.setAside())
		purged = p.HVals(ctx, s.keys.purged())
		for i, st := range all {
			sizes[i] = p.ZCard(ctx, s.keys.state(st))
		}
		return nil
	})
	if err != nil && !isNil(err) {
		return Census{}, s.failed("census", err)
	}
	a := Census{Listed: make(map[statemachine.State]int64, len(all))}
	a.Opened, _ = last.Int64()
	for _, text := range aside.Val() {
		a.Aside = append(a.Aside, idOf(text))
	}
	for _, text := range purged.Val() {
		n, _ := strconv.ParseInt(text, 10, 64)
		a.Purged += n
	}
	for i, st := range all {
		a.Listed[st] = sizes[i].Val()
	}
	return a, nil
}

// RecountAll is [Store.Recount] of everything.
func (s *Store) RecountAll(ctx context.Context) (mended int, err error) {
	for {
		n, err := s.Recount(ctx)
		mended += n
		s.recounting.mu.Lock()
		left := len(s.recounting.left)
		s.recounting.mu.Unlock()
		if err != nil || left == 0 {
			return mended, err
		}
	}
}

// LostIDs is how many ids are known to have been given out and lost: of those
// that were left out, all but the margin.
func (e *Epoch) LostIDs() int64 { return max(0, e.ToID-e.FromID-epochGap) }
