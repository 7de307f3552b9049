package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
)

// changeLosses are the scenarios of the log of changes; they join scriptLosses.
var changeLosses = map[string]map[string]loss{
	"enter": {"first": {call: enterCall}, "another": {prepare: entered(3), call: enterCall}},
	"shorten": {"some": {prepare: entered(3), call: func(t *testing.T, st *store.Store) step {
		return done(func() error { return st.ShortenChanges(t.Context(), 1) })
	}}},
}

func changeOf(on string) *task.ChangeEntry {
	return &task.ChangeEntry{By: "token ci", What: "cancel", On: on, Asked: "j7", Count: 3, Reason: "wrong \"day\"", Request: "r-1"}
}

func enterCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return done(func() error { return st.EnterChange(t.Context(), "CALL", changeOf("1-3")) })
}

func entered(n int) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		for i := range n {
			if err := sp.Store.EnterChange(t.Context(), fmt.Sprint("C", i), changeOf(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func changesBefore(t *testing.T, sp *storetest.Space, before int64, most int) (text string) {
	t.Helper()
	found, err := sp.Store.ChangesBefore(t.Context(), before, most)
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		text += fmt.Sprintf("%d:%s ", found[i].ID, found[i].On)
	}
	return strings.TrimSpace(text)
}

// What is read is what was entered, with its number and time; a call sent again enters nothing.
func TestChangeComesBack(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	enterCall(t, sp.Store).must(t)
	enterCall(t, sp.Store).must(t)
	want := *changeOf("1-3")
	want.ID, want.At = 1, task.Moment(noon)
	found, err := sp.Store.ChangesBefore(t.Context(), 0, 10)
	if diff := cmp.Diff([]task.ChangeEntry{want}, found); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	sp.Raw.RPush(t.Context(), sp.Key("changes"), "what somebody has written")
	if found, err = sp.Store.ChangesBefore(t.Context(), 0, 1); err != nil || len(found) != 1 || !found[0].Damaged || found[0].ID != 2 {
		t.Errorf("%+v, %v", found, err)
	}
}

// The newest entries stay, each with its number; a flush keeps them too.
func TestChangesAreShortened(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	entered(7)(t, sp)
	if got := changesBefore(t, sp, 0, 3); got != "7:6 6:5 5:4" {
		t.Error(got)
	}
	if err := sp.Store.ShortenChanges(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	if got := changesBefore(t, sp, 0, 10); got != "7:6 6:5 5:4 4:3" {
		t.Error(got)
	}
	if got := changesBefore(t, sp, 6, 10); got != "5:4 4:3" {
		t.Error(got)
	}
	if got := changesBefore(t, sp, 3, 10); got != "" {
		t.Error(got)
	}
	if _, err := sp.Store.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := changesBefore(t, sp, 0, 1); got != "7:6" {
		t.Error(got)
	}
}

// An entry takes some 250 bytes, so that 100,000 take 25 MB.
func TestMemoryOfAChange(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	const n = 2000
	began := time.Now()
	entered(n)(t, sp)
	size := sp.Raw.MemoryUsage(t.Context(), sp.Key("changes"), 0).Val() / n
	t.Logf("%d bytes, %s an entry", size, time.Since(began)/n)
	if size < 50 || size > 300 {
		t.Errorf("an entry takes %d bytes", size)
	}
}
