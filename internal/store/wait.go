package store

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// WaitWork waits until one of the buckets has work for this worker, at most d
// (1 ms to a few seconds). It reports whether it was woken. A wake-up goes to
// one waiter; whoever gets it claims, and the claim passes it on.
func (s *Store) WaitWork(ctx context.Context, buckets []Bucket, d time.Duration) (bool, error) {
	lists := make([]string, len(buckets))
	for i, b := range buckets {
		lists[i] = s.keys.wake(b.Name())
	}
	return s.wait(ctx, lists, d)
}

// WaitServer waits until there is work for a server, at most d.
func (s *Store) WaitServer(ctx context.Context, d time.Duration) (bool, error) {
	return s.wait(ctx, []string{s.keys.wakeServer()}, d)
}

// wait sends BLPOP itself: the client's own method knows whole seconds only. It
// stays below the read timeout, which would end the connection.
func (s *Store) wait(ctx context.Context, lists []string, d time.Duration) (bool, error) {
	if s.where.ReadTimeout > 0 {
		d = min(d, s.where.ReadTimeout/2)
	}
	args := make([]any, 0, len(lists)+2)
	args = append(args, "blpop")
	for _, l := range lists {
		args = append(args, l)
	}
	cmd := redis.NewStringSliceCmd(ctx, append(args, max(d, time.Millisecond).Seconds())...)
	err := s.rdb.Process(ctx, cmd)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, redis.Nil):
		return false, nil
	default:
		return false, s.failed("wait", err)
	}
}

// Watch announces moves to an outcome and to the archive: the channel gets a
// value soon after one or more of them. It is a hint, several moves may come
// as one value, and after a lost connection some may be missed, so a reader
// polls as well. The channel is never closed; stop ends the subscription.
func (s *Store) Watch(ctx context.Context) (changes <-chan struct{}, stop func()) {
	sub := s.rdb.Subscribe(ctx, s.keys.changed())
	out := make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range sub.Channel(redis.WithChannelSize(1), redis.WithChannelSendTimeout(time.Millisecond)) {
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out, func() {
		_ = sub.Close() // the connection goes either way
		<-done
	}
}
