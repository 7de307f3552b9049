package store

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// topologyAge is how old the map of a Redis Cluster may be. A client that asks for
// it rarely goes on sending to a master that has died.
const topologyAge = 2 * time.Second

// connect makes a client of which every call ends, also where its context has no
// deadline: within the time to connect, to send and to receive once, all repetitions
// and the wait for a free connection included. With the defaults that is 11 s. The
// lives of Redis are noted by a, if it is not nil.
func connect(o *redis.UniversalOptions, a *arrivals) redis.UniversalClient {
	limit := o.DialTimeout + o.WriteTimeout + o.ReadTimeout
	if !o.IsClusterMode {
		n := &arrived{arrivals: a}
		if a != nil {
			o.OnConnect = n.connected
		}
		client := redis.NewUniversalClient(o)
		client.AddHook(bound{limit: limit})
		if a != nil {
			n.client = client
			client.AddHook(n)
		}
		return client
	}
	cluster := o.Cluster()
	cluster.ClusterStateReloadInterval = topologyAge
	if a != nil {
		cluster.NewClient = a.connectNode
	}
	client := redis.NewClusterClient(cluster)
	client.AddHook(bound{limit: limit, lost: func(ctx context.Context) { client.ReloadState(ctx) }})
	return client
}

// connectNode makes the client of one node of a Redis Cluster.
func (a *arrivals) connectNode(o *redis.Options) *redis.Client {
	n := &arrived{arrivals: a, lasts: lifeCheck}
	o.OnConnect = n.connected
	client := redis.NewClient(o)
	n.client = client
	client.AddHook(n)
	return client
}

// bound ends each call in time.
type bound struct {
	limit time.Duration
	// lost is called after a call without an answer; nil for nothing.
	lost func(context.Context)
}

// DialHook changes nothing: connections have a limit of their own.
func (b bound) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook bounds one command.
func (b bound) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return b.call(ctx, func(ctx context.Context) error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook bounds several commands that are sent together.
func (b bound) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return b.call(ctx, func(ctx context.Context) error { return next(ctx, cmds) })
	}
}

func (b bound) call(ctx context.Context, do func(context.Context) error) error {
	if b.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.limit)
		defer cancel()
	}
	err := do(ctx)
	var answer redis.Error
	if err != nil && b.lost != nil && !errors.As(err, &answer) {
		b.lost(ctx)
	}
	return err
}
