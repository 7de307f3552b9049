package store

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
)

// Flush deletes every key of the namespace and no other, and returns how many.
// Only the count of the history stays, in a new epoch: programs that have seen the
// namespace before must not take this for a loss. Ids begin at 1 again.
func (s *Store) Flush(ctx context.Context) (int64, error) {
	epoch, err := s.rdb.HGet(ctx, s.keys.meta(), "epoch").Int64()
	if err != nil && !aboutData(err) {
		return 0, s.failed("flush", err)
	}
	kept := s.keys.meta()
	if err != nil && !isNil(err) {
		kept = "" // of another type, it is no history
	}
	total, err := s.flushKeys(ctx, kept)
	if err != nil || kept == "" {
		return total, err
	}
	_, err = s.run(ctx, "flush", []string{s.keys.meta()}, max(epoch, 1))
	return total, err
}

func (s *Store) flushKeys(ctx context.Context, kept string) (int64, error) {
	if c, ok := s.rdb.(*redis.ClusterClient); ok {
		var total int64
		err := c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			n, err := s.flushNode(ctx, node, kept)
			total += n
			return err
		})
		if err != nil {
			return total, s.failed("flush", err)
		}
		return total, nil
	}
	return s.flushNode(ctx, s.rdb, kept)
}

func (s *Store) flushNode(ctx context.Context, node redis.Cmdable, kept string) (int64, error) {
	var total int64
	var cursor uint64
	for {
		found, next, err := node.Scan(ctx, cursor, s.keys.all(), 1000).Result()
		if err != nil {
			return total, s.failed("flush", err)
		}
		total += int64(len(found)) // not the answer of UNLINK, which is 0 when the call was repeated
		found = slices.DeleteFunc(found, func(key string) bool { return key == kept })
		if len(found) > 0 {
			if err := node.Unlink(ctx, found...).Err(); err != nil {
				return total, s.failed("flush", err)
			}
		}
		if cursor = next; cursor == 0 {
			return total, nil
		}
	}
}
