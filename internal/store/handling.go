package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/statemachine"
)

// Handling is the lease under which a manager gives ended tasks to its handlers:
// no other manager gets those it holds. It ends if it is not renewed.
type Handling struct {
	// Instance names the lease; it is unique and never used again.
	Instance string
	// Lease is how long the manager may be silent.
	Lease time.Duration
}

// BeginHandling begins a lease. Those of the instances it replaces, whose
// handlers have all returned, are over at once.
func (s *Store) BeginHandling(ctx context.Context, h Handling, replaces ...string) error {
	args := append(make([]any, 0, 1+len(replaces)), len(replaces))
	for _, former := range replaces {
		args = append(args, former)
	}
	return s.keep(ctx, h, "begin", args)
}

// KeepHandling renews the lease. The error matches [ErrHandlingLost] if it is
// over, or if one of the ids, which the manager holds, is another's.
func (s *Store) KeepHandling(ctx context.Context, h Handling, ids ...int64) error {
	return s.keep(ctx, h, "renew", idArgs([]any{0}, ids))
}

// EndHandling ends the lease: others may have at once whatever it holds. It is
// no error if it is over already.
func (s *Store) EndHandling(ctx context.Context, h Handling) error {
	_, err := s.kept(ctx, h, "end", []any{0})
	return err
}

func (s *Store) keep(ctx context.Context, h Handling, what string, args []any) error {
	kept, err := s.kept(ctx, h, what, args)
	if err == nil && !kept {
		return fmt.Errorf("handle: %w", ErrHandlingLost)
	}
	return err
}

// kept uses the connections of the heartbeats, so that no transfer delays it.
func (s *Store) kept(ctx context.Context, h Handling, what string, args []any) (bool, error) {
	args = append([]any{h.Instance, what, h.Lease.Seconds()}, args...)
	v, err := s.runOn(ctx, s.session, "keep", []string{s.keys.meta(), s.keys.handling()}, args...)
	return v == int64(1), err
}

// TakeHandling grants the tasks that are in that outcome and that no living
// manager handles, and gives back others. It returns the granted ones with their
// revisions; a task that was not held before has a new one. The error
// matches [ErrHandlingLost] if the lease is over. At most [MaxMoves] tasks a call.
func (s *Store) TakeHandling(ctx context.Context, h Handling, outcome statemachine.State, back, take []int64) (map[int64]int64, error) {
	if n := max(len(back), len(take)); n > MaxMoves {
		return nil, fmt.Errorf("handle: %d tasks in one call: want at most %d", n, MaxMoves)
	}
	keys := []string{s.keys.meta(), s.keys.handling()}
	for _, id := range take {
		keys = append(keys, s.keys.task(id))
	}
	args := idArgs([]any{h.Instance, string(outcome), len(back)}, back)
	v, err := s.run(ctx, "handle", keys, idArgs(args, take)...)
	if err != nil {
		return nil, err
	}
	if v == int64(-1) {
		return nil, fmt.Errorf("handle: %w", ErrHandlingLost)
	}
	granted := make(map[int64]int64, len(take))
	for i, id := range take {
		if rev := asReply(v).text(i); rev != "" {
			granted[id], _ = strconv.ParseInt(rev, 10, 64)
		}
	}
	return granted, nil
}

func idArgs(args []any, ids []int64) []any {
	for _, id := range ids {
		args = append(args, id)
	}
	return args
}

// Handled returns which of the tasks a manager handles whose lease is not over
// at that moment.
func (s *Store) Handled(ctx context.Context, ids []int64, at statemachine.Time) (map[int64]bool, error) {
	fields := make([]string, len(ids))
	for i, id := range ids {
		fields[i] = strconv.FormatInt(id, 10)
	}
	holders, err := s.handling(ctx, fields)
	if err != nil {
		return nil, err
	}
	var instances []string
	for _, holder := range holders {
		if holder != "" && !slices.Contains(instances, "@"+holder) {
			instances = append(instances, "@"+holder)
		}
	}
	leases, err := s.handling(ctx, instances)
	if err != nil {
		return nil, err
	}
	handled := map[int64]bool{}
	for i, holder := range holders {
		if holder == "" {
			continue
		}
		till, err := statemachine.ParseTime(leases[slices.Index(instances, "@"+holder)])
		handled[ids[i]] = err == nil && till > at
	}
	return handled, nil
}

// handling reads fields of the hash; those that are not there are empty.
func (s *Store) handling(ctx context.Context, fields []string) ([]string, error) {
	if len(fields) == 0 {
		return nil, nil
	}
	values, err := s.rdb.HMGet(ctx, s.keys.handling(), fields...).Result()
	if err != nil {
		return nil, s.failed("handling", err)
	}
	texts := make([]string, len(fields))
	for i := range texts {
		texts[i] = reply(values).text(i)
	}
	return texts, nil
}
