package upkeep

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/task"
)

// Flush deletes every key of the namespace and no other, and returns how many.
// Only the log of changes stays, and the count of the history, in a new epoch: programs that have seen the
// namespace before must not take this for a loss. Ids begin at 1 again. Meanwhile the
// namespace is closed: other calls fail as if Redis were away, since half of what they
// write would be deleted.
func (s *Upkeep) Flush(ctx context.Context) (int64, error) {
	f := flush{store: s, token: conn.NewToken(), kept: []string{s.Keys.Meta(), s.Keys.Changes(), s.Keys.ChangesGone()}}
	err := f.shut(ctx, flushPatience)
	if err != nil && !conn.AboutData(err) {
		return 0, err
	}
	if err != nil {
		f.kept = f.kept[1:] // meta is of another type, and no history
	}
	total, err := f.all(ctx)
	if err != nil || !f.closed() {
		return total, err
	}
	_, err = s.Run(ctx, "flush", conn.Subject{}, f.token, "")
	return total, err
}

// flushPatience is how long a namespace stays closed after the last page of a flush that was cut short.
const flushPatience = 30 * time.Second

// flush is one flush of a namespace.
type flush struct {
	store *Upkeep
	token string
	// kept are the keys that stay.
	kept []string
}

// closed reports whether meta stays, which closes the namespace meanwhile.
func (f *flush) closed() bool { return f.kept[0] == f.store.Keys.Meta() }

// shut closes the namespace for so long.
func (f *flush) shut(ctx context.Context, d time.Duration) error {
	v, err := f.store.Run(ctx, "flush", conn.Subject{}, f.token, int64(d.Seconds()))
	if err == nil && v != int64(1) {
		return fmt.Errorf("flush: %w: %w", task.ErrUnreachable, conn.ErrFlushing)
	}
	return err
}

func (f *flush) all(ctx context.Context) (int64, error) {
	s := f.store
	if c, ok := s.Redis.(*redis.ClusterClient); ok {
		var total int64
		err := c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			n, err := f.node(ctx, node)
			total += n
			return err
		})
		if err != nil {
			return total, s.Failed("flush", err)
		}
		return total, nil
	}
	return f.node(ctx, s.Redis)
}

func (f *flush) node(ctx context.Context, node redis.Cmdable) (int64, error) {
	s := f.store
	var total int64
	var cursor uint64
	for {
		found, next, err := node.Scan(ctx, cursor, s.Keys.All(), 1000).Result()
		if err != nil {
			return total, s.Failed("flush", err)
		}
		found = slices.DeleteFunc(found, func(key string) bool { return slices.Contains(f.kept, key) })
		total += int64(len(found)) // not the answer of UNLINK, which is 0 when the call was repeated
		if len(found) > 0 {
			if err := node.Unlink(ctx, found...).Err(); err != nil {
				return total, s.Failed("flush", err)
			}
		}
		if cursor = next; cursor == 0 {
			return total, nil
		}
		if !f.closed() {
			continue
		}
		if err := f.shut(ctx, flushPatience); err != nil {
			return total, err
		}
	}
}
