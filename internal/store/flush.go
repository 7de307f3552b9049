package store

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Flush deletes every key of the namespace and no other, and returns how many.
func (s *Store) Flush(ctx context.Context) (int64, error) {
	if c, ok := s.rdb.(*redis.ClusterClient); ok {
		var total int64
		err := c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			n, err := s.flushNode(ctx, node)
			total += n
			return err
		})
		if err != nil {
			return total, s.failed("flush", err)
		}
		return total, nil
	}
	return s.flushNode(ctx, s.rdb)
}

func (s *Store) flushNode(ctx context.Context, node redis.Cmdable) (int64, error) {
	var total int64
	var cursor uint64
	for {
		found, next, err := node.Scan(ctx, cursor, s.keys.all(), 1000).Result()
		if err != nil {
			return total, s.failed("flush", err)
		}
		if len(found) > 0 {
			if err := node.Unlink(ctx, found...).Err(); err != nil {
				return total, s.failed("flush", err)
			}
			// Not the answer of UNLINK, which is 0 when the call was repeated.
			total += int64(len(found))
		}
		if cursor = next; cursor == 0 {
			return total, nil
		}
	}
}
