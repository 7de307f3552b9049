package tasks

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/task"
)

// BucketOf reads a name in the list of buckets. One that is no name, by hand,
// becomes a bucket that no worker takes from.
func BucketOf(name string) task.Bucket {
	b, err := task.ParseBucket(name)
	if err != nil {
		return task.Bucket{Env: name}
	}
	return b
}

// Member is how an id stands in a bucket: a letter for its number of digits
// and the digits, so that the order of the bytes is the order of the numbers
// and tasks with equal scores are claimed first in, first out.
func Member(id int64) string {
	digits := strconv.FormatInt(id, 10)
	return string(rune('a'+len(digits)-1)) + digits
}

// bucketArgs are the buckets one call of a script names, each once. Scripts
// find a bucket, and its wake list beside it, by its place counted from 1.
type bucketArgs struct {
	names []string
	place map[string]int
}

// index returns the place of a bucket, which it gets at the first mention.
func (a *bucketArgs) index(b task.Bucket) int {
	name := b.Name()
	if i, ok := a.place[name]; ok {
		return i
	}
	if a.place == nil {
		a.place = map[string]int{}
	}
	a.names = append(a.names, name)
	a.place[name] = len(a.names)
	return len(a.names)
}

// keys are the pairs of bucket and wake list.
func (a *bucketArgs) keys(k conn.Keys) []string {
	pairs := make([]string, 0, 2*len(a.names))
	for _, name := range a.names {
		pairs = append(pairs, k.Ready(name), k.Wake(name))
	}
	return pairs
}

// EmptyBuckets returns the names of the buckets on the list that no task waits in.
// The default bucket is never among them.
func (s *Tasks) EmptyBuckets(ctx context.Context) ([]string, error) {
	names, err := s.Redis.SMembers(ctx, s.Keys.Buckets()).Result()
	if err != nil {
		return nil, s.Failed("empty buckets", err)
	}
	cmds := make([]*redis.IntCmd, len(names))
	err = s.Pipelined(ctx, "empty buckets", func(p redis.Pipeliner) {
		for i, name := range names {
			cmds[i] = p.Exists(ctx, s.Keys.Ready(name))
		}
	})
	if err != nil {
		return nil, err
	}
	var empty []string
	for i, name := range names {
		if name != task.DefaultBucketName && cmds[i].Val() == 0 {
			empty = append(empty, name)
		}
	}
	return empty, nil
}

// Prune takes buckets off the list that are empty still, and returns how many; the
// list would only grow. A task that comes to such a bucket later puts it there
// again, and workers learn of it within a poll, so prune what has been empty for a while. The default
// bucket stays.
func (s *Tasks) Prune(ctx context.Context, names []string) (int, error) {
	k := s.Keys
	pairs, args := []string(nil), []any(nil)
	for _, name := range names {
		if name != task.DefaultBucketName {
			pairs, args = append(pairs, k.Ready(name), k.Wake(name)), append(args, name)
		}
	}
	if len(args) == 0 {
		return 0, nil
	}
	v, err := s.Run(ctx, "prune", conn.Subject{More: pairs}, args...)
	gone, _ := v.(int64)
	return int(gone), err
}
