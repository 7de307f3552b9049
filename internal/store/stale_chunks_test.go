package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

// TestStaleChunks: a worker that thaws after its round was given to another
// does not mix what it has left into the live output.
func TestStaleChunks(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.Open(t, storetest.Spec())
	old := sp.Claim(t, "w", 1)[0]
	must(t, sp, 1, statemachine.Server, statemachine.Lose)
	send := func(c tasks.Claimed, text string) error {
		return sp.Store.Tell(t.Context(), "w", &c.Task, tasks.News{Chunks: []tasks.Chunk{{Stream: "output", Data: []byte(text)}}})
	}
	stale := func(c tasks.Claimed, when string) {
		t.Helper()
		if err := send(c, "stale"); !errors.Is(err, statemachine.ErrStale) {
			t.Errorf("%s: %v", when, err)
		}
	}
	stale(old, "open again")
	current := sp.Claim(t, "v", 1)[0]
	stale(old, "claimed by another")
	other := current
	other.Task.Current.Claim = old.Task.Current.Claim
	stale(other, "claim of another")
	if n := sp.Raw.Exists(t.Context(), sp.Key("live:1")).Val(); n != 0 {
		t.Error("something was sent")
	}
	if err := send(current, "new"); err != nil {
		t.Error(err)
	}
	sp.Report(t, &current, "", "")
	stale(current, "reported")
	chunks, _, err := sp.Store.Chunks(t.Context(), 1, "", time.Second)
	if err != nil || len(chunks) != 1 || chunks[0].Round != 1 || string(chunks[0].Data) != "new" {
		t.Errorf("chunks %+v, error %v", chunks, err)
	}
}
