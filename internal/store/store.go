package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/config"
	"github.com/tdf-go/tdf/statemachine"
)

// Store is one namespace in one Redis. It is safe for use by many goroutines.
type Store struct {
	rdb       redis.UniversalClient
	keys      keys
	namespace string
	where     config.Redis
	scripts   *scripts
}

// Option changes how a Store works.
type Option func(*options)

type options struct {
	clock   string
	retries int
}

// Dial makes a Store on the Redis that where describes. It connects lazily:
// the first error of an unreachable Redis comes from the first call, usually
// [Store.Check]. The caller closes the Store.
func Dial(where config.Redis, namespace string, opts ...Option) (*Store, error) {
	o := options{clock: clockScript}
	for _, opt := range opts {
		opt(&o)
	}
	uo, err := universal(where)
	if err != nil {
		return nil, err
	}
	if o.retries != 0 {
		uo.MaxRetries = o.retries
	}
	rdb := redis.NewUniversalClient(uo)
	return &Store{
		rdb: rdb, keys: newKeys(namespace), namespace: namespace, where: where, scripts: newScripts(o.clock),
	}, nil
}

// Namespace is the namespace the Store works in.
func (s *Store) Namespace() string { return s.namespace }

// Close closes the connections. Calls under way fail.
func (s *Store) Close() error {
	if err := s.rdb.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		return fmt.Errorf("close redis: %w", err)
	}
	return nil
}

// Now returns the time of Redis, the only clock of TDF.
func (s *Store) Now(ctx context.Context) (statemachine.Time, error) {
	t, err := s.rdb.Time(ctx).Result()
	if err != nil {
		return 0, s.failed("time", err)
	}
	return statemachine.Time(t.UnixMicro()), nil
}

// failed wraps what go-redis returned. Errors of the connection match
// [ErrUnreachable]; an answer of Redis does not.
func (s *Store) failed(op string, err error) error {
	var answer redis.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, redis.ErrClosed):
		return fmt.Errorf("%s: %w", op, err)
	case errors.As(err, &answer) && !temporary(answer):
		return fmt.Errorf("%s: redis answers: %w", op, err)
	default:
		return fmt.Errorf("%s: %w at %s: %w", op, ErrUnreachable, s.where.String(), err)
	}
}

// temporary answers mean that Redis cannot serve now, which for a caller is as
// good as not being there.
func temporary(err redis.Error) bool {
	e := error(err)
	return redis.IsLoadingError(e) || redis.IsReadOnlyError(e) || redis.IsMasterDownError(e) ||
		redis.IsClusterDownError(e) || redis.IsTryAgainError(e)
}
