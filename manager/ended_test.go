package manager

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// counted counts what is read of tasks.
type counted struct {
	namespace

	whole, looked, listed atomic.Int64
}

func (c *counted) TasksByID(ctx context.Context, ids []int64) ([]*tasks.TaskHeader, error) {
	c.whole.Add(int64(len(ids)))
	return c.namespace.TasksByID(ctx, ids)
}

func (c *counted) Fields(ctx context.Context, ids []int64, names ...string) ([]map[string]string, error) {
	c.looked.Add(int64(len(ids)))
	return c.namespace.Fields(ctx, ids, names...)
}

func (c *counted) IDs(ctx context.Context, state sm.State, offset, limit int64, reverse bool) ([]int64, error) {
	ids, err := c.namespace.IDs(ctx, state, offset, limit, reverse)
	c.listed.Add(int64(len(ids)))
	return ids, err
}

// countedManager counts, and looks only when it is told of a change.
func countedManager(t *testing.T, ns string) (*Manager, *counted) {
	t.Helper()
	m := newManager(t, ns)
	c := &counted{namespace: m.store}
	m.store = c
	m.after = func(d time.Duration) <-chan time.Time {
		if d == waitPoll {
			return nil
		}
		return time.After(d)
	}
	return m, c
}

// A thousand results, as they come: each task is read whole once, and looked at no more often than there are events.
func TestEndedReadsEachTaskOnce(t *testing.T) {
	t.Parallel()
	const all = 1000
	ns := redistest.Namespace(t)
	s := worktest.Open(t, ns)
	m, calls := countedManager(t, ns)
	ids := mustOpen(t, m, all, spec())
	given, finished := map[int64]bool{}, 0
	work := func() { // as the results of the round before are there
		n, err := worktest.Round(t.Context(), s, worktest.Echo)
		if err != nil {
			t.Fatal(err)
		}
		finished += n
	}
	work()
	for got, err := range m.Ended(t.Context(), ids) {
		if err != nil || got.State != sm.Succeeded || got.Output() == "" || given[got.ID] {
			t.Fatalf("%+v, %v, want each task once with its output", got, err)
		}
		if given[got.ID] = true; len(given) == finished && finished < all {
			work()
		}
	}
	if len(given) != all || calls.whole.Load() != all {
		t.Errorf("%d tasks, %d read whole, want %d", len(given), calls.whole.Load(), all)
	}
	if got := calls.looked.Load(); got < all || got > 2*all {
		t.Errorf("looked at %d tasks, want %d at the beginning, and few at the end", got, all)
	}
	if counts, err := m.Count(t.Context()); err != nil || counts[sm.Succeeded] != all {
		t.Errorf("%v, %v, want nothing archived", counts, err)
	}
}

// What was archived has ended; a broken record and an end that leaves no event, as another client's, are found too.
func TestEndedWithoutEvents(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	srv, s, m := redistest.Shared(t), worktest.Open(t, ns), newManager(t, ns)
	mustOpen(t, m, 5, spec())
	if _, err := m.Hold(t.Context(), []int64{4, 5}, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	worktest.Drain(t, s, worktest.Fail)
	finish := background(t, newManager(t, ns, quick()), Handlers{Unhandled: Archive})
	until(t, m, "3 archived", func(c Counts) bool { return c[sm.Archived] == 3 })
	if err := finish(); err != nil {
		t.Fatal(err)
	}
	srv.Do(t, "DEL", ns+":events")
	srv.Do(t, "HSET", ns+":task:4", "state", "nonsense")
	var got []int64
	for task, err := range m.Ended(t.Context(), []int64{5, 1, 2, 2, 4}) {
		if err != nil || (task.Err != nil) != (task.ID == 4) {
			t.Fatalf("%+v, %v", task, err)
		}
		if got = append(got, task.ID); len(got) == 3 {
			srv.Do(t, "HSET", ns+":task:5", "state", "expired")
		}
	}
	if !slices.Equal(got, []int64{1, 2, 4, 5}) {
		t.Errorf("ended: %v", got)
	}
}

// While no event comes, the tasks themselves are looked at now and then, and not at each look.
func TestEndedLooksWhereItIsQuiet(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m, calls := countedManager(t, ns)
	mustOpen(t, m, 1, spec())
	looks := 0
	m.after = func(d time.Duration) <-chan time.Time {
		if looks++; d == waitPoll && looks == 1 {
			redistest.Shared(t).Do(t, "HSET", ns+":task:1", "state", "expired") // as another client's
		}
		return time.After(time.Microsecond)
	}
	for got, err := range m.Ended(t.Context(), []int64{1}) {
		if err != nil || got.ID != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if n := calls.looked.Load(); n != 2 || looks < quietLooks {
		t.Errorf("looked at the task %d times in %d looks, want at the beginning and in the end", n, looks)
	}
}

func TestEndedSaysWhatEndedIt(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m, other := newManager(t, ns), newManager(t, ns)
	mustOpen(t, m, 2, spec())
	first := func(ctx context.Context, ids ...int64) error {
		for task, err := range m.Ended(ctx, ids) {
			if task != nil || err == nil {
				t.Errorf("task %+v with error %v", task, err)
			}
			return err
		}
		return nil
	}
	if err := first(t.Context()); err != nil {
		t.Errorf("no ids: %v, want no waiting", err)
	}
	for _, id := range []int64{0, 99} {
		if err := first(t.Context(), 1, id); !errors.Is(err, task.ErrNoTask) {
			t.Errorf("task %d: %v, want task.ErrNoTask", id, err)
		}
	}
	if _, err := m.Cancel(t.Context(), []int64{1}, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	after := func(ctx context.Context, end func()) (last error) { // the first task is given
		for task, err := range m.Ended(ctx, []int64{1, 2}) {
			if last = err; task != nil {
				end()
			}
		}
		return last
	}
	if err := after(ctx, func() { cancel(why) }); !errors.Is(err, why) {
		t.Errorf("interrupted: %v, want %v", err, why)
	}
	flush := func() {
		if _, err := other.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := after(t.Context(), flush); !errors.Is(err, task.ErrGone) {
		t.Errorf("flushed: %v, want task.ErrGone", err)
	}
}
