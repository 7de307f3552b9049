package fleet_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// TestAddQueueSetMeanwhile: a call that is repeated after a lost reply made the
// queue, also if somebody has set it since.
func TestAddQueueSetMeanwhile(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.AddQueue(t, task.ParseQueue("q", nil))
	by := sp.Raw.HGet(t.Context(), sp.Key("queue:q"), "created_by").Val()
	if _, err := sp.Store.SetQueue(t.Context(), "q", func(q *task.QueueSpec) error { return q.Set("threads", "3") }); err != nil {
		t.Fatal(err)
	}
	if now := sp.Raw.HGet(t.Context(), sp.Key("queue:q"), "created_by").Val(); by == "" || now != by {
		t.Errorf("created by %q, now %q", by, now)
	}
	if err := sp.Store.AddQueue(t.Context(), task.ParseQueue("q", nil)); !errors.Is(err, task.ErrQueueExists) {
		t.Errorf("added by another call: %v", err)
	}
	before := sp.Raw.HGetAll(t.Context(), sp.Key("queue:q")).Val()
	if err := sp.Store.AddQueueAs(t.Context(), by, task.ParseQueue("q", nil)); err != nil {
		t.Errorf("sent again: %v", err)
	}
	if after := sp.Raw.HGetAll(t.Context(), sp.Key("queue:q")).Val(); !maps.Equal(before, after) {
		t.Errorf("sent again, the queue is %v, was %v", after, before)
	}
}
