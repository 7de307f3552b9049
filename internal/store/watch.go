package store

import (
	"context"
	"time"
)

// Watch announces moves to an outcome and to the archive: the channel gets a
// value soon after one or more of them. It is a hint, several moves may come
// as one value, and some may be missed, so a reader polls as well. A connection that is
// made, at first or anew, is announced like a move. The channel is never closed; stop ends the subscription.
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
	stop = s.subscribe(ctx, time.Minute, map[string]chan<- struct{}{own: renew, all: rules})
	return Calls{Renew: renew, Rules: rules}, stop
}

func (s *Store) hints(ctx context.Context, channel string) (<-chan struct{}, func()) {
	out := make(chan struct{}, 1)
	return out, s.subscribe(ctx, 3*time.Second, map[string]chan<- struct{}{channel: out})
}

// subscribe passes messages on until stop. A connection that is silent is asked for
// an answer, and given up if there is none.
func (s *Store) subscribe(ctx context.Context, silence time.Duration, outs map[string]chan<- struct{}) (stop func()) {
	l := &listener{store: s, silence: silence, outs: outs}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.run(ctx)
	}()
	return func() {
		cancel()
		l.close()
		<-done
	}
}
