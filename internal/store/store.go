package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/base/config"
)

// Store is one namespace in one Redis. It is safe for use by many goroutines.
type Store struct {
	rdb redis.UniversalClient
	// session is for heartbeats alone, so that neither a slow transfer nor an
	// exhausted pool delays them. It connects when it is used first.
	session redis.UniversalClient
	// patient is for commands that wait in Redis.
	patient    redis.UniversalClient
	keys       keys
	namespace  string
	where      config.Redis
	scripts    *scripts
	recounting recounter
	history    memory
}

// Option changes how a Store works.
type Option func(*options)

type options struct {
	clock    string
	retries  int
	poolSize int
}

// sessionPool is how many connections heartbeats may use: one, and one more
// while a broken one is given up.
const sessionPool = 2

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
	own, waiting := *uo, *uo
	own.PoolSize = sessionPool
	if waiting.ReadTimeout > 0 {
		waiting.ReadTimeout += longestBlock
	}
	uo.PoolSize = o.poolSize
	s := &Store{
		keys: newKeys(namespace), namespace: namespace, where: where, scripts: newScripts(o.clock),
		history: memory{seen: History{Epoch: 1}},
	}
	arriving := newArrivals(s.scripts, s.keys.meta())
	s.rdb, s.session, s.patient = connect(uo, arriving), connect(&own, arriving), connect(&waiting, nil)
	return s, nil
}

// Mark tells the Redis of this Store from others; see config.Redis.
func (s *Store) Mark() string { return s.where.Mark() }

// Namespace is the namespace the Store works in.
func (s *Store) Namespace() string { return s.namespace }

// Close closes the connections. Calls under way fail.
func (s *Store) Close() error {
	if err := errors.Join(notClosed(s.rdb.Close()), notClosed(s.session.Close()), notClosed(s.patient.Close())); err != nil {
		return fmt.Errorf("close redis: %w", err)
	}
	return nil
}

// notClosed leaves out that something is closed already.
func notClosed(err error) error {
	if errors.Is(err, redis.ErrClosed) {
		return nil
	}
	return err
}

// failed wraps what go-redis returned. Errors of the connection match
// [ErrUnreachable]; an answer of Redis does not, unless it is temporary.
func (s *Store) failed(op string, err error) error {
	var answer redis.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, redis.ErrClosed):
		return fmt.Errorf("%s: %w", op, err)
	case errors.As(err, &answer) && !temporary(answer) && (!s.where.Cluster() || !moved(answer)):
		return fmt.Errorf("%s: redis answers: %w", op, err)
	default: // also errNotReplicated
		return fmt.Errorf("%s: %w at %s: %w", op, ErrUnreachable, s.where.String(), err)
	}
}

// pipelined sends commands together. Its error is the first that is not about
// the data: that nothing is there, or that a key has another type, is for the
// caller to find at the command. Everything else, such as a refused password,
// says nothing about the data and must not be taken for its absence.
func (s *Store) pipelined(ctx context.Context, op string, queue func(redis.Pipeliner)) error {
	cmds, err := s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		queue(p)
		return nil
	})
	if err == nil {
		return nil
	}
	if !aboutData(err) { // the commands themselves may not say it
		return s.failed(op, err)
	}
	for _, c := range cmds {
		if err := c.Err(); err != nil && !aboutData(err) {
			return s.failed(op, err)
		}
	}
	return nil
}

func aboutData(err error) bool {
	return errors.Is(err, redis.Nil) || strings.HasPrefix(err.Error(), "WRONGTYPE ")
}
