package store

import (
	"context"
	"slices"

	"github.com/tdf-go/tdf/statemachine"
)

// remindBatch is how many buckets one script looks at: it blocks Redis meanwhile.
const remindBatch = 250

// Remind wakes a waiter of each bucket in which a task has been due for the time
// late, at least, and was not claimed. Wake-ups are hints, and go to one waiter, which may be
// killed with it; nobody else would hear of the task before he looks by himself. It returns how
// long it is until the next task will be as late, statemachine.Forever if none will.
func (s *Store) Remind(ctx context.Context, late statemachine.Duration) (statemachine.Duration, error) {
	names, err := s.rdb.SMembers(ctx, s.keys.buckets()).Result()
	if err != nil {
		return 0, s.failed("remind", err)
	}
	next := statemachine.Forever
	for part := range slices.Chunk(names, remindBatch) {
		keys := []string{s.keys.meta()}
		for _, name := range part {
			keys = append(keys, s.keys.ready(name), s.keys.wake(name))
		}
		v, err := s.run(ctx, "remind", keys, late.Text())
		if err != nil {
			return 0, err
		}
		text, _ := v.(string)
		if left, err := statemachine.ParseDuration(text); err == nil {
			next = min(next, left)
		}
	}
	return next, nil
}
