package store

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// CountedRound is an entry in what limits are enforced by: the round of a task,
// counted for a queue, a node, or both; empty for any.
type CountedRound struct {
	ID          int64
	Queue, Node string
}

// Counted returns all entries that limits are enforced by, for audits.
func (s *Store) Counted(ctx context.Context) ([]CountedRound, error) {
	all, err := s.counters(ctx)
	if err != nil {
		return nil, err
	}
	members := make([]*redis.StringSliceCmd, len(all))
	err = s.pipelined(ctx, "counted", func(p redis.Pipeliner) {
		for i, c := range all {
			if c.hash {
				members[i] = p.HKeys(ctx, c.key)
			} else {
				members[i] = p.SMembers(ctx, c.key)
			}
		}
	})
	var rounds []CountedRound
	for i, c := range all {
		for _, text := range members[i].Val() {
			id, _ := strconv.ParseInt(text, 10, 64) // what is no number is no task: 0
			rounds = append(rounds, CountedRound{ID: id, Queue: c.queue, Node: c.node})
		}
	}
	return rounds, err
}
