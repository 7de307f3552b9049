package store

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// WaitWork waits until one of the buckets has work for this worker, at most d
// (1 ms to a few seconds), or until [Store.Interrupt]. It returns the name of
// the bucket that woke it, empty if none did. A wake-up goes to one waiter:
// whoever gets it claims, and the claim passes it on; or it calls [Store.PassOn].
func (s *Store) WaitWork(ctx context.Context, worker string, buckets []Bucket, d time.Duration) (string, error) {
	lists := make([]string, 0, 1+len(buckets))
	lists = append(lists, s.keys.halt(worker))
	for _, b := range buckets {
		lists = append(lists, s.keys.wake(b.Name()))
	}
	list, err := s.wait(ctx, lists, d)
	if list == lists[0] {
		list = ""
	}
	return strings.TrimPrefix(list, s.keys.wake("")), err
}

// WaitServer waits until there is work for a server, at most d.
func (s *Store) WaitServer(ctx context.Context, d time.Duration) (bool, error) {
	list, err := s.wait(ctx, []string{s.keys.wakeServer()}, d)
	return list != "", err
}

// wait sends BLPOP itself: the client's own method knows whole seconds only. It
// returns the list that had a token.
func (s *Store) wait(ctx context.Context, lists []string, d time.Duration) (string, error) {
	args := make([]any, 0, len(lists)+2)
	args = append(args, "blpop")
	for _, l := range lists {
		args = append(args, l)
	}
	cmd := redis.NewStringSliceCmd(ctx, append(args, bounded(d).Seconds())...)
	err := s.patient.Process(ctx, cmd)
	switch {
	case err == nil && len(cmd.Val()) == 2:
		return cmd.Val()[0], nil
	case err == nil, errors.Is(err, redis.Nil):
		return "", nil
	default:
		return "", s.failed("wait", err)
	}
}

// longestBlock is the longest that a command waits in Redis. Its connection has
// so much more time to answer.
const longestBlock = 5 * time.Second

// bounded keeps a wait above 0, which would be for ever, and below longestBlock.
func bounded(d time.Duration) time.Duration { return max(min(d, longestBlock), time.Millisecond) }
