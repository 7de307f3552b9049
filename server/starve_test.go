package server

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// No script settles more tasks than a batch has.
func TestPassesInBatches(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, l := newServer(t, sp, setting(t, "batch_size=2"))
	sp.SetClock(t, at(0))
	late := storetest.Spec(func(s *task.Definition) { storetest.Set(s, "end_before", at(1).Text()) })
	sp.Open(t, late, late, late, late, late)
	sp.SetClock(t, at(2))
	if n := pass(t, s); n != 5 {
		t.Errorf("moved %d tasks, want 5", n)
	}
	for n, want := range map[int]int{2: 2, 1: 1} {
		if got := times([]*logs{l}, fmt.Sprintf(`"msg":"processing","tasks":%d,"state":"open"}`, n)); got != want {
			t.Errorf("%d batches of %d tasks, want %d\n%s", got, n, want, l)
		}
	}
}

// A full batch of entries in the index of deadlines that are there for nothing
// does not hide what is due behind it.
func TestFullBatchOfNothing(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, _ := newServer(t, sp, func(o *options) { o.BatchSize = 10 })
	sp.SetClock(t, at(0))
	batch := make([]task.Definition, 30)
	for i := range batch {
		batch[i] = storetest.Spec()
	}
	for _, id := range sp.Open(t, batch...) {
		if err := sp.Raw.ZAdd(t.Context(), sp.Key("due"), redis.Z{Score: 1, Member: fmt.Sprint(id)}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	over := sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "end_before", at(1).Text()) }))[0]
	sp.SetClock(t, at(2))
	if n := pass(t, s); n != 1 {
		t.Errorf("moved %d tasks, want 1", n)
	}
	checkState(t, sp, over, statemachine.Expired)
}
