package store_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
)

// Which ids there may be is what epochs have not left out, or what they lost.
func TestSpans(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	const gap = 1_000_000
	epochs := [][2]int64{{5, 7 + gap}, {7 + gap, 7 + 2*gap}, {20 + 2*gap, 20 + 3*gap}, {15 + 2*gap, 18 + 3*gap}}
	for i, e := range epochs {
		sp.Raw.HSet(t.Context(), sp.Key("epochs"), i+2, fmt.Sprintf("1.000000 1 9 2 %d %d", e[0], e[1]))
	}
	for i, c := range []struct {
		first, last int64
		want        []store.Span
	}{
		{1, 4, []store.Span{{1, 4, false}}},
		{1, 6, []store.Span{{1, 5, false}, {6, 6, true}}},
		{2, 7 + gap, []store.Span{{2, 5, false}, {6, 7, true}}},
		{7, 7 + 2*gap, []store.Span{{7, 7, true}}},
		{8, 7 + 2*gap, nil},
		{gap, 9 + 2*gap, []store.Span{{8 + 2*gap, 9 + 2*gap, false}}},
		{16 + 2*gap, 25 + 3*gap, []store.Span{{16 + 2*gap, 18 + 2*gap, true}, {21 + 3*gap, 25 + 3*gap, false}}},
		{math.MaxInt64 - 1, math.MaxInt64, []store.Span{{math.MaxInt64 - 1, math.MaxInt64, false}}},
		{5, 4, nil},
	} {
		if got, err := sp.Store.Spans(t.Context(), c.first, c.last); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("case %d: %v, %v, want %v", i, got, err, c.want)
		}
	}
}

// The newest id is one that was given out, also when an epoch has just begun.
func TestNewestID(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	want := func(want int64) {
		t.Helper()
		if id, err := sp.Store.NewestID(t.Context()); err != nil || id != want {
			t.Errorf("newest id %d, %v, want %d", id, err, want)
		}
	}
	lose := func() {
		t.Helper()
		seen, _ := sp.Store.History()
		seen.Seq, seen.ID = seen.Seq+3, seen.ID+2
		sp.Store.Remember(seen)
		if e, err := sp.Store.OpenEpoch(t.Context(), false); err != nil || e.Epoch == 0 {
			t.Fatalf("epoch %+v, %v", e, err)
		}
	}
	want(0)
	sp.Open(t, storetest.Spec(), storetest.Spec())
	want(2)
	for range 2 { // the second begins before anything is opened
		lose()
		want(2)
	}
	id := sp.Open(t, storetest.Spec())[0]
	want(id)
	sp.Anew(t)
	lose()
	want(0)
}
