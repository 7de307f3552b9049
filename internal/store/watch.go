package store

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// Watch announces moves to an outcome and to the archive: the channel gets a
// value soon after one or more of them. It is a hint, several moves may come
// as one value, and after a lost connection some may be missed, so a reader
// polls as well. The channel is never closed; stop ends the subscription.
func (s *Store) Watch(ctx context.Context) (changes <-chan struct{}, stop func()) {
	return s.hints(ctx, s.keys.changed())
}

// Calls announces that the worker should renew its lease at once because
// something was ordered. It is a hint, like [Store.Watch].
func (s *Store) Calls(ctx context.Context, name string) (calls <-chan struct{}, stop func()) {
	// Many workers are idle most of the time, and their heartbeats tell what a
	// broken subscription would: it need not be looked at every few seconds.
	return s.hints(ctx, s.keys.call(name), redis.WithChannelHealthCheckInterval(time.Minute))
}

func (s *Store) hints(ctx context.Context, channel string, options ...redis.ChannelOption) (<-chan struct{}, func()) {
	sub := s.rdb.Subscribe(ctx, channel)
	options = append(options, redis.WithChannelSize(1), redis.WithChannelSendTimeout(time.Millisecond))
	out := make(chan struct{}, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range sub.Channel(options...) {
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
