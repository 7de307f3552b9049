package store

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/timing"
)

// listener is a subscription that notices when its connection is dead on the other
// side only: the client's own keeps such a one for a quarter of an hour, because
// what it sends to ask is taken by the kernel.
type listener struct {
	store *Store
	// silence is how long the connection may be silent before it is asked.
	silence time.Duration
	outs    map[string]chan<- struct{} // by channel

	mu     sync.Mutex
	sub    *redis.PubSub
	closed bool
}

// run listens until ctx ends or close is called.
func (l *listener) run(ctx context.Context) {
	pauses := timing.Backoff{First: 100 * time.Millisecond, Most: 2 * time.Second}
	for ctx.Err() == nil {
		sub := l.open(ctx)
		if sub == nil {
			return
		}
		l.hear(ctx, sub, &pauses)
		_ = sub.Close() // the connection goes either way
		timing.Pause(ctx, pauses.Next())
	}
}

// open subscribes, nil if that is not wanted any more.
func (l *listener) open(ctx context.Context) *redis.PubSub {
	sub := l.store.rdb.Subscribe(ctx, slices.Sorted(maps.Keys(l.outs))...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = sub.Close()
		return nil
	}
	l.sub = sub
	return sub
}

// hear passes messages on until close, or until the connection does not answer. One
// that fails the client makes anew.
func (l *listener) hear(ctx context.Context, sub *redis.PubSub, pauses *timing.Backoff) {
	asked := false
	for ctx.Err() == nil {
		patience := l.silence
		if asked {
			patience = l.store.answerLimit()
		}
		message, err := sub.ReceiveTimeout(ctx, patience)
		switch {
		case err == nil:
			asked = false
			pauses.Reset()
			l.pass(message)
		case errors.Is(err, redis.ErrClosed), asked && isTimeout(err):
			return
		case isTimeout(err):
			asked = sub.Ping(ctx) == nil
		default:
			asked = false
			timing.Pause(ctx, pauses.Next())
		}
	}
}

// pass gives a hint to whom it is for. One that has not taken the last is not
// told again.
func (l *listener) pass(message any) {
	var channel string
	switch m := message.(type) {
	case *redis.Message:
		channel = m.Channel
	case *redis.Subscription: // nobody has heard what was said before
		channel = m.Channel
	default: // the answer to a ping
		return
	}
	select {
	case l.outs[channel] <- struct{}{}:
	default:
	}
}

// close ends the wait for a message.
func (l *listener) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.sub != nil {
		_ = l.sub.Close()
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
