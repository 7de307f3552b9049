package store

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/route"
)

// EmptyBuckets returns the names of the buckets on the list that no task waits in.
// The default bucket is never among them.
func (s *Store) EmptyBuckets(ctx context.Context) ([]string, error) {
	names, err := s.rdb.SMembers(ctx, s.keys.buckets()).Result()
	if err != nil {
		return nil, s.failed("empty buckets", err)
	}
	cmds := make([]*redis.IntCmd, len(names))
	err = s.pipelined(ctx, "empty buckets", func(p redis.Pipeliner) {
		for i, name := range names {
			cmds[i] = p.Exists(ctx, s.keys.ready(name))
		}
	})
	if err != nil {
		return nil, err
	}
	var empty []string
	for i, name := range names {
		if name != route.DefaultBucketName && cmds[i].Val() == 0 {
			empty = append(empty, name)
		}
	}
	return empty, nil
}

// Prune takes buckets off the list that are empty still, and returns how many; the
// list would only grow. A task that comes to such a bucket later puts it there
// again, and workers learn of it within a poll, so prune what has been empty for a while. The default
// bucket stays.
func (s *Store) Prune(ctx context.Context, names []string) (int, error) {
	k := s.keys
	keys, args := []string{k.meta(), k.buckets()}, []any(nil)
	for _, name := range names {
		if name != route.DefaultBucketName {
			keys, args = append(keys, k.ready(name), k.wake(name)), append(args, name)
		}
	}
	if len(args) == 0 {
		return 0, nil
	}
	v, err := s.run(ctx, "prune", keys, args...)
	gone, _ := v.(int64)
	return int(gone), err
}
