package verbs

import (
	"testing"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
)

// The task opened last is one, also when an epoch has just begun.
func TestLastInNewEpoch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range 2 {
		if _, err := b.store.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{storetest.Spec()}}); err != nil {
			t.Fatal(err)
		}
	}
	b.store.Remember(conn.History{Epoch: 1, Seq: 99, ID: 7})
	if e, err := b.store.OpenEpoch(t.Context(), false); err != nil || e.Epoch != 2 {
		t.Fatalf("epoch %+v, %v", e, err)
	}
	for _, command := range []string{"show", "history", "why"} {
		if out, want := b.must(command, "last"), b.must(command, "2"); out != want {
			t.Errorf("%s last printed %q, want %q", command, out, want)
		}
	}
}
