package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// errNotReplicated means that no replica has what Redis acknowledged.
var errNotReplicated = errors.New("no replica has confirmed the change in time")

// scriptCall is one call of a script.
type scriptCall struct {
	script *redis.Script
	// all are loaded where Redis has lost this one.
	all  *scripts
	keys []string
	args []any
}

// send calls the script.
func (c scriptCall) send(ctx context.Context, client redis.UniversalClient) (any, error) {
	return c.loaded(ctx, client, func(eval evaluate) (any, error) {
		return eval(ctx, client, c.keys, c.args...).Result()
	})
}

// replicated is send, and waits until a replica has what was written. The two
// commands go over one connection, because Redis waits for what that one wrote. A
// change that was not confirmed may be there all the same; the call is made again.
func (c scriptCall) replicated(wait time.Duration) func(context.Context, redis.UniversalClient) (any, error) {
	return func(ctx context.Context, client redis.UniversalClient) (any, error) {
		return c.loaded(ctx, client, func(eval evaluate) (any, error) { return c.confirmed(ctx, client, wait, eval) })
	}
}

type evaluate func(context.Context, redis.Scripter, []string, ...any) *redis.Cmd

func (c scriptCall) confirmed(ctx context.Context, client redis.UniversalClient, wait time.Duration, eval evaluate) (any, error) {
	var answer *redis.Cmd
	var replicas *redis.Cmd
	_, err := client.Pipelined(ctx, func(both redis.Pipeliner) error {
		answer = eval(ctx, both, c.keys, c.args...)
		replicas = both.Do(ctx, "wait", 1, wait.Milliseconds())
		return nil
	})
	switch {
	case answer.Err() != nil && !errors.Is(answer.Err(), redis.Nil):
		return nil, answer.Err() //nolint:wrapcheck // the caller does
	case replicas.Err() != nil && isAnswer(replicas.Err()):
		// The master is a replica now. Wrapped, its answer would count as final.
		return nil, fmt.Errorf("%w: %v", errNotReplicated, replicas.Err()) //nolint:errorlint // see above
	case err != nil && !errors.Is(err, redis.Nil):
		return nil, err //nolint:wrapcheck // the caller does
	}
	if n, _ := replicas.Int(); n < 1 {
		return nil, fmt.Errorf("%w (%v)", errNotReplicated, wait)
	}
	return answer.Result() //nolint:wrapcheck // the caller does
}

// isAnswer reports whether Redis has answered with an error.
func isAnswer(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}
