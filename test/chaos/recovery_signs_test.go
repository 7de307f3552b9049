package chaos

import (
	"context"
	"errors"
	"slices"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// more is a sign that what is counted has grown since the first answer.
func more(count func(map[statemachine.State]int64) int64) sign {
	base := int64(-1)
	return func(ctx context.Context, s *store.Store) (bool, error) {
		counts, err := s.Count(ctx)
		if err != nil {
			return false, err
		}
		n := count(counts)
		if base < 0 {
			base = n
		}
		return n > base, nil
	}
}

// servedMore is a sign that servers work: one of them has moved one more task.
func servedMore() sign {
	next := int64(0)
	return func(ctx context.Context, s *store.Store) (bool, error) {
		_, newest, err := s.EventSpan(ctx)
		if err != nil {
			return false, err
		}
		if next == 0 || newest < next-1 { // at first, and where Redis has lost some
			next = newest + 1
		}
		events, err := s.Events(ctx, next, 1000)
		for i := range events {
			next = events[i].Seq + 1
			if events[i].Actor == statemachine.Server {
				return true, nil
			}
		}
		return false, err
	}
}

// settledMore is a sign that the site works: one more task has ended.
func settledMore() sign {
	return more(func(counts map[statemachine.State]int64) int64 {
		n := counts[statemachine.Archived]
		for _, outcome := range statemachine.Outcomes() {
			n += counts[outcome]
		}
		return n
	})
}

// archivedMore is a sign that managers work: one more task is archived.
func archivedMore() sign {
	return more(func(counts map[statemachine.State]int64) int64 { return counts[statemachine.Archived] })
}

// heard is a sign that a worker is heard of: a heartbeat after the first answer.
func heard(name string) sign {
	base := statemachine.Time(0)
	return func(ctx context.Context, s *store.Store) (bool, error) {
		info, now, err := s.Worker(ctx, name)
		if err != nil {
			return false, err
		}
		if base == 0 {
			base = now
		}
		return info.State == task.WorkerReady && task.Stamp(info.Heartbeat) > base, nil
	}
}

// unhindered is a sign that a worker has no reason left to claim nothing, as it
// says itself after the first answer.
func unhindered(name string) sign {
	again := heard(name)
	return func(ctx context.Context, s *store.Store) (bool, error) {
		if ok, err := again(ctx, s); err != nil || !ok {
			return false, err
		}
		info, _, err := s.Worker(ctx, name)
		return err == nil && info.Reason == "", err
	}
}

// freed is a sign that the rounds a worker has now are over. Without an answer
// there is nothing to wait for: it is nil then.
func (w *watcher) freed(ctx context.Context, name string) sign {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	info, _, err := w.store.Worker(ctx, name)
	if err != nil || len(info.Tasks) == 0 {
		return nil
	}
	had, err := rounds(ctx, w.store, info.Tasks)
	if err != nil || len(had) == 0 {
		return nil
	}
	return func(ctx context.Context, s *store.Store) (bool, error) {
		has, err := rounds(ctx, s, info.Tasks)
		return err == nil && !slices.ContainsFunc(had, func(r string) bool { return slices.Contains(has, r) }), err
	}
}

var errVanished = errors.New("a task that was running is not there")

// rounds returns which of the tasks run, as task/round.
func rounds(ctx context.Context, s *store.Store, ids []int64) ([]string, error) {
	found, err := s.Fields(ctx, ids, "state", "round")
	if err != nil {
		return nil, err
	}
	var running []string
	for i, fields := range found {
		if fields == nil {
			return nil, errVanished
		}
		if fields["state"] == string(statemachine.Running) {
			running = append(running, entry{ids[i], number(fields["round"])}.String())
		}
	}
	return running, nil
}
