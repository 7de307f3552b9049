package store

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/statemachine"
)

// DefaultLease is the lease in seconds where no server has published another.
const DefaultLease = 15

// Watched says that the caller has watched for the time Span, by its own clock, that
// who sent the last heartbeat before the time Until of the namespace has sent none since.
// The zero value leaves the lease to the time of the namespace, which may jump ahead.
type Watched struct {
	Span  statemachine.Duration
	Until statemachine.Time
}

// args are those of the script.
func (w Watched) args() []any {
	if w.Span == 0 {
		return []any{"", ""}
	}
	return []any{w.Span.Text(), w.Until.Text()}
}

// Lost reads the workers whose lease is over with their tasks, at most limit of
// each, and fences them: they can neither renew nor claim any more. One that
// holds nothing is taken off the list. Repeat until no worker is left, but for
// those with an Err or with tasks that cannot be moved, which come again.
func (s *Store) Lost(ctx context.Context, limit int, watched Watched) (Lost, error) {
	k := s.keys
	r, err := s.runList(ctx, "lost", []string{k.meta(), k.lease(), k.setAside()},
		append([]any{k.workerPrefix(), k.heldPrefix(), k.taskPrefix(), DefaultLease, maxLost, limit,
			string(statemachine.Running), string(WorkerLost)}, watched.args()...)...)
	if err != nil {
		return Lost{}, err
	}
	at := clockOf(r, 4)
	lost := Lost{Now: at.now, Next: r.time(1), Longest: r.duration(3)}
	for i := range r.list(2) {
		w := r.list(2).list(i)
		one := LostWorker{
			Name: w.text(0), Incarnation: w.number(1), Silent: lost.Now.Sub(w.time(2)), Tasks: decodeSeenList(w.list(4), at),
		}
		if key := w.text(3); key != "" {
			one.Err = fmt.Errorf("worker %s: %w: the key %s:<name> has another type; delete it", quote(one.Name), ErrDamaged, key)
		}
		lost.Workers = append(lost.Workers, one)
	}
	return lost, nil
}

// PublishLease sets the lease for all workers, and where it is another one calls them, so that they renew and hear of it at
// once. One that was told a longer lease keeps it until its next heartbeat.
func (s *Store) PublishLease(ctx context.Context, lease statemachine.Duration) error {
	if lease <= 0 {
		return &statemachine.FieldError{Field: "worker_timeout", Value: lease.Text(), Want: "more than 0 seconds"}
	}
	was, err := s.rdb.HGet(ctx, s.keys.meta(), "worker_timeout").Result()
	if err == nil && was == lease.Text() {
		return nil
	}
	if err := s.rdb.HSet(ctx, s.keys.meta(), "worker_timeout", lease.Text(), "protocol", Protocol).Err(); err != nil {
		return s.failed("publish", err)
	}
	names, err := s.rdb.ZRange(ctx, s.keys.lease(), 0, -1).Result()
	if err != nil {
		return s.failed("publish", err)
	}
	return s.pipelined(ctx, "publish", func(p redis.Pipeliner) {
		for _, name := range names {
			p.Publish(ctx, s.keys.call(name), "1")
		}
	})
}

// Lease returns what a server has published by [Store.PublishLease], or
// [DefaultLease] seconds where none has.
func (s *Store) Lease(ctx context.Context) (statemachine.Duration, error) {
	lease, _, err := s.published(ctx, "worker_timeout", DefaultLease*statemachine.Second)
	return lease, err
}

// published reads a time span that servers set for all, and reports whether one has.
func (s *Store) published(
	ctx context.Context, field string, otherwise statemachine.Duration,
) (d statemachine.Duration, set bool, err error) {
	text, err := s.rdb.HGet(ctx, s.keys.meta(), field).Result()
	if isNil(err) {
		return otherwise, false, nil
	}
	if err != nil {
		return 0, false, s.failed(field, err)
	}
	if d, err = statemachine.ParseDuration(text); err != nil {
		return 0, false, fmt.Errorf("meta %s: %w", field, err)
	}
	return d, true, nil
}
