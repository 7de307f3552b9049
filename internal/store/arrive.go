package store

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// mostLives is how many lives of Redis are kept to compare with.
const mostLives = 16

// arrivals notes for every new connection whether another life of Redis has begun.
type arrivals struct {
	script *redis.Script
	meta   string
	// known is the run id for which that has been noted.
	known atomic.Value
}

// connected is called for each new connection before it is used. An answer of Redis
// that it may not be asked, or not now, is no reason to do without the connection,
// but one that loads its data must be asked again.
func (a *arrivals) connected(ctx context.Context, cn *redis.Conn) error {
	err := a.arrive(ctx, cn)
	var answer redis.Error
	if errors.As(err, &answer) && !redis.IsLoadingError(err) && !redis.HasErrorPrefix(err, "BUSY ") {
		return nil
	}
	return err
}

func (a *arrivals) arrive(ctx context.Context, cn *redis.Conn) error {
	info, err := cn.Info(ctx, "server").Result()
	if err != nil {
		return err //nolint:wrapcheck // go-redis wraps errors of connecting
	}
	run := parseInfo(info)["run_id"]
	if known, _ := a.known.Load().(string); run == "" || run == known {
		return nil
	}
	// A text that is long enough to be one's own, and short enough for every call.
	if err := a.note(ctx, cn, strings.ToLower(run[:min(len(run), 12)])); err != nil {
		return err
	}
	a.known.Store(run)
	return nil
}

// note calls the script. Who may not load it cannot call any other either, until a
// server has loaded them, which has arrived by then.
func (a *arrivals) note(ctx context.Context, cn *redis.Conn, life string) error {
	keys := []string{a.meta}
	err := a.script.EvalSha(ctx, cn, keys, life, mostLives).Err()
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return err //nolint:wrapcheck // go-redis wraps errors of connecting
	}
	if err := a.script.Load(ctx, cn).Err(); err != nil {
		return err //nolint:wrapcheck // go-redis wraps errors of connecting
	}
	return a.script.EvalSha(ctx, cn, keys, life, mostLives).Err() //nolint:wrapcheck // go-redis wraps errors of connecting
}
