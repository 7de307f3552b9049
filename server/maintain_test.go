package server

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

// A client in another language has taken an id when a new epoch begins. What the
// epoch leaves out is not looked at; a task that it lost and that is written all
// the same is found by the walk.
func TestAdoptBesideEpoch(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.Open(t, storetest.Spec())
	back := sp.Snapshot(t)
	lost := sp.Open(t, storetest.Spec(), storetest.Spec())[1]
	back()
	taken := sp.Raw.Incr(t.Context(), sp.Key("task_id")).Val()
	e, err := sp.Store.OpenEpoch(t.Context(), false)
	if err != nil || e.FromID != taken || lost != taken+1 || e.ToID != lost+1_000_000 {
		t.Fatalf("epoch %+v, %v", e, err)
	}
	s, _ := newServer(t, sp)
	k := keeperOf(s)
	k.awaited = map[int64]time.Time{}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // to look at a million ids takes longer
	defer cancel()
	look := func(what func(context.Context) error) {
		t.Helper()
		if err := what(ctx); err != nil {
			t.Fatal(err)
		}
	}
	listed := func(when string, want map[int64]bool) {
		t.Helper()
		found, _, err := sp.Store.Inspect(t.Context(), slices.Collect(maps.Keys(want)))
		for i := range found {
			if found[i].InBucket != want[found[i].Task.ID] {
				t.Errorf("%s: task %d is in its bucket: %v", when, found[i].Task.ID, found[i].InBucket)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
	look(k.adopt)
	if ids := slices.Collect(maps.Keys(k.awaited)); !slices.Equal(ids, []int64{taken}) {
		t.Errorf("%d ids are awaited, want %d", len(ids), taken)
	}
	if adopted, last, err := sp.Store.Watermark(t.Context()); err != nil || adopted != e.ToID || last != e.ToID {
		t.Errorf("looked at up to %d of %d, %v", adopted, last, err)
	}
	writeAsOriginal(t, sp, taken, nil)
	writeAsOriginal(t, sp, lost, nil)
	next := openAsOriginal(t, sp, nil)
	look(k.adopt)
	listed("adopted", map[int64]bool{taken: true, lost: false, next: true})
	for range 3 {
		look(k.walk)
	}
	listed("walked over", map[int64]bool{taken: true, lost: true, next: true})
	if k.walked != next {
		t.Errorf("walked up to %d, want %d", k.walked, next)
	}
}
