package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

// chunks writes what has come for round n, waiting at most d for it, and keeps
// what is of later rounds. Without out, what is of round n is passed over.
func (f *follower) chunks(ctx context.Context, out *stream, n int, d time.Duration) error {
	for {
		found, after, err := f.s.store.Chunks(ctx, f.id, f.after, d)
		if err == nil {
			f.redis.answered()
			f.after, f.waits = after, append(f.waits, found...)
			break
		}
		if err := f.redis.failed(ctx, err); err != nil {
			return err
		}
	}
	slices.SortStableFunc(f.waits, func(a, b store.Chunk) int {
		return cmp.Or(cmp.Compare(a.Round, b.Round), cmp.Compare(a.Offset, b.Offset))
	})
	for i, c := range f.waits {
		if c.Round > n {
			f.waits = f.waits[i:]
			return nil
		}
		if out == nil || c.Round != n || c.Stream != f.name {
			continue
		}
		if out.at == 0 && c.Offset > 0 && time.Now().Before(f.hold) {
			f.waits = f.waits[i:]
			return nil
		}
		if err := out.put(c.Offset, string(c.Data)); err != nil {
			return err
		}
	}
	f.waits = nil
	return nil
}

// held are the parts of round n that wait for its beginning.
func (f *follower) held(n int) []part {
	var parts []part
	for _, c := range f.waits {
		if c.Round == n && c.Stream == f.name {
			parts = append(parts, part{c.Offset, string(c.Data)})
		}
	}
	return parts
}

// request asks the worker for what the program writes, now and then.
func (f *follower) request(ctx context.Context) error {
	if time.Since(f.asked) < followAgain {
		return nil
	}
	for {
		err := f.s.store.Follow(ctx, f.id, followFor, f.asked.IsZero())
		if err == nil {
			f.redis.answered()
			f.asked = time.Now()
			return nil
		}
		if err := f.redis.failed(ctx, err); err != nil {
			return err
		}
	}
}

// look reads where the task is.
func (f *follower) look(ctx context.Context) (glance, error) {
	fields, err := f.fields(ctx, "round")
	if err != nil {
		return glance{}, err
	}
	g := glance{state: statemachine.State(fields["state"])}
	if g.round, err = strconv.Atoi(fields["round"]); err != nil || !g.state.Valid() {
		return g, fmt.Errorf("task %d: %w", f.id, store.ErrDamaged)
	}
	return g, nil
}

// fields reads fields of the task, as long as it is the same task.
func (f *follower) fields(ctx context.Context, names ...string) (map[string]string, error) {
	for {
		found, err := f.s.store.Fields(ctx, []int64{f.id}, store.BirthFields(names...)...)
		if err == nil {
			err = f.births.Check(ctx, []int64{f.id}, found)
		}
		switch {
		case err == nil && found[0] != nil:
			f.redis.answered()
			return found[0], nil
		case err == nil:
			var task *store.Task
			if task, err = f.s.store.Task(ctx, f.id); err == nil {
				err = task.Err
			}
			if err == nil { // it has just been written
				continue
			}
		}
		if err := f.redis.failed(ctx, err); err != nil {
			return nil, err
		}
	}
}
