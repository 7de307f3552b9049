package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// What is opened while the namespace is flushed is there afterwards as a whole, or
// not at all.
func TestFlushWhileOthersOpen(t *testing.T) {
	t.Parallel()
	sp := storetest.On(t, redistest.Start(t))
	specs := make([]task.Definition, 500)
	for i := range specs {
		specs[i] = storetest.Spec()
	}
	for range 8 {
		sp.Open(t, specs...)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var openers sync.WaitGroup
	for range 3 {
		st := sp.Dial(t)
		openers.Go(func() {
			for ctx.Err() == nil {
				_, _ = st.Open(ctx, tasks.OpenRequest{Key: conn.NewToken(), Specs: specs[:1]})
			}
		})
	}
	_, err := sp.Store.Flush(t.Context())
	cancel()
	openers.Wait()
	if err != nil {
		t.Fatal(err)
	}
	last, err := sp.Store.LastID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := sp.Raw.Keys(t.Context(), sp.Key("task:*")).Result()
	if err != nil || int64(len(keys)) != last {
		t.Errorf("%d tasks are there of %d, %v", len(keys), last, err)
	}
}

// A namespace that is being flushed is closed to all but the flush, until that has
// ended, or was not heard of for a while.
func TestClosedWhileFlushed(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.Open(t, storetest.Spec())
	open := func() error {
		_, err := sp.Store.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{storetest.Spec()}})
		return err
	}
	flushing := func(till time.Time) {
		sp.Raw.HSet(t.Context(), sp.Key("meta"), "flushing", fmt.Sprintf("ANOTHER %d", till.Unix()))
	}
	flushing(time.Now().Add(time.Hour))
	if err := open(); !errors.Is(err, task.ErrUnreachable) || !strings.Contains(err.Error(), "is being flushed") {
		t.Errorf("opened: %v", err)
	}
	if _, err := sp.Store.Flush(t.Context()); !errors.Is(err, task.ErrUnreachable) {
		t.Errorf("flushed at the same time: %v", err)
	}
	flushing(time.Now().Add(-time.Hour))
	if err := open(); err != nil {
		t.Errorf("after a flush that was cut short: %v", err)
	}
	if _, err := sp.Store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := open(); err != nil {
		t.Errorf("after a flush: %v", err)
	}
}

// What servers have published outlives a flush: a worker that registers before they publish it again gets their lease.
func TestFlushKeepsTheSettings(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	for _, err := range []error{
		sp.Store.PublishLease(t.Context(), 3*second), sp.Store.PublishGrace(t.Context(), 2*second),
		sp.Store.PublishEvents(t.Context(), 7), sp.Store.PublishQuarantine(t.Context(), "on"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	sp.Open(t, storetest.Spec())
	for range 2 {
		if _, err := sp.Store.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if w := sp.Register(t, "w"); w.Lease != 3*second {
		t.Errorf("lease %s, want 3", w.Lease.Text())
	}
	meta := sp.Raw.HGetAll(t.Context(), sp.Key("meta")).Val()
	if meta["timeout_grace"] != "2.000000" || meta["events"] != "7" || meta["quarantine"] != "on" || meta["adopted"] != "" {
		t.Errorf("kept %v", meta)
	}
}

// A flush of a namespace in which nothing has happened forgets nothing of Redis: who connects after it meets no new life, and ids begin at 1.
func TestFlushKeepsTheLife(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	if _, err := sp.Store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	sp.Open(t, storetest.Spec())
	late := sp.Dial(t)
	ids, err := late.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{storetest.Spec()}})
	if err != nil || ids[0] != 2 {
		t.Errorf("opened %v, %v, want task 2", ids, err)
	}
}

// A worker that has registered before the lease was published is called to renew, and again only when it changes.
func TestPublishedLeaseIsTold(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	w := sp.Register(t, "w")
	calls := sp.Raw.Subscribe(t.Context(), sp.Key("call:w"))
	t.Cleanup(func() { _ = calls.Close() })
	if _, err := calls.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, lease := range []statemachine.Duration{3 * second, 3 * second, 4 * second} {
		if err := sp.Store.PublishLease(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
	}
	sp.Raw.Publish(t.Context(), sp.Key("call:w"), "end")
	for _, want := range []string{"1", "1", "end"} {
		if m, err := calls.ReceiveMessage(t.Context()); err != nil || m.Payload != want {
			t.Fatalf("called with %v, %v, want %q", m, err, want)
		}
	}
	if r := sp.Renew(t, w); r.Lease != 4*second {
		t.Errorf("lease %s, want 4", r.Lease.Text())
	}
}

// The id of a dead letter is given out again after a flush: the new task of
// that id is no dead letter.
func TestIDWasSetAside(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.Raw.HSet(t.Context(), sp.Key("set_aside"), "1", "{}", "99", "{}")
	w := sp.Register(t, "w")
	sp.Open(t, storetest.Spec())
	sp.ClaimUnder(t, w, 1)
	sp.Raw.ZAdd(t.Context(), sp.Key("lease"), redis.Z{Member: w.Name})
	lost, err := sp.Store.Lost(t.Context(), 9, fleet.Watched{})
	if err != nil || len(lost.Workers) != 1 || len(lost.Workers[0].Tasks) != 1 {
		t.Errorf("lost %+v, error %v; want the worker with its task", lost, err)
	}
	if asides, err := sp.Store.Asides(t.Context()); err != nil || len(asides) != 1 {
		t.Errorf("set aside: %v, %v", asides, err)
	}
}
