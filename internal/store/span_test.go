package store_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
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
		want        []tasks.Span
	}{
		{1, 4, []tasks.Span{{First: 1, Last: 4, Lost: false}}},
		{1, 6, []tasks.Span{{First: 1, Last: 5, Lost: false}, {First: 6, Last: 6, Lost: true}}},
		{2, 7 + gap, []tasks.Span{{First: 2, Last: 5, Lost: false}, {First: 6, Last: 7, Lost: true}}},
		{7, 7 + 2*gap, []tasks.Span{{First: 7, Last: 7, Lost: true}}},
		{8, 7 + 2*gap, nil},
		{gap, 9 + 2*gap, []tasks.Span{{First: 8 + 2*gap, Last: 9 + 2*gap, Lost: false}}},
		{16 + 2*gap, 25 + 3*gap, []tasks.Span{{First: 16 + 2*gap, Last: 18 + 2*gap, Lost: true}, {First: 21 + 3*gap, Last: 25 + 3*gap, Lost: false}}},
		{math.MaxInt64 - 1, math.MaxInt64, []tasks.Span{{First: math.MaxInt64 - 1, Last: math.MaxInt64, Lost: false}}},
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
