package store

import (
	"context"
	"maps"
	"slices"
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

// Calls are hints for one worker, like those of [Store.Watch].
type Calls struct {
	// Renew says that something was ordered: make a heartbeat at once.
	Renew <-chan struct{}
	// Rules says that queues or nodes were changed: claim anew.
	Rules <-chan struct{}
}

// Calls announces what a worker should not hear of only at its next heartbeat or
// claim. The channels are never closed; stop ends the subscription.
func (s *Store) Calls(ctx context.Context, name string) (calls Calls, stop func()) {
	renew, rules := make(chan struct{}, 1), make(chan struct{}, 1)
	own, all := s.keys.call(name), s.keys.rules()
	// Many workers are idle most of the time, and their heartbeats tell what a
	// broken subscription would: it need not be looked at every few seconds.
	stop = s.subscribe(ctx, map[string]chan<- struct{}{own: renew, all: rules}, redis.WithChannelHealthCheckInterval(time.Minute))
	return Calls{Renew: renew, Rules: rules}, stop
}

func (s *Store) hints(ctx context.Context, channel string) (<-chan struct{}, func()) {
	out := make(chan struct{}, 1)
	return out, s.subscribe(ctx, map[string]chan<- struct{}{channel: out})
}

func (s *Store) subscribe(ctx context.Context, outs map[string]chan<- struct{}, options ...redis.ChannelOption) (stop func()) {
	sub := s.rdb.Subscribe(ctx, slices.Sorted(maps.Keys(outs))...)
	options = append(options, redis.WithChannelSize(len(outs)), redis.WithChannelSendTimeout(time.Millisecond))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for message := range sub.Channel(options...) {
			select {
			case outs[message.Channel] <- struct{}{}:
			default:
			}
		}
	}()
	return func() {
		_ = sub.Close() // the connection goes either way
		<-done
	}
}
