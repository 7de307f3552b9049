package main

import (
	"context"

	"github.com/tdf-go/tdf/bench/redisd"
)

type redisServer = redisd.Server

// withRedis gives one run a redis-server of its own, which ends with it.
func withRedis(ctx context.Context, do func(srv *redisServer) error) error {
	srv, err := redisd.Start(ctx)
	if err != nil {
		return err
	}
	defer srv.Stop()
	return do(srv)
}
