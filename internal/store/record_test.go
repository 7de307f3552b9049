package store_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// recordLosses are the scenarios of records; they join scriptLosses.
var recordLosses = map[string]map[string]loss{
	"put":   {"new": {call: putRecordCall}, "again": {prepare: recordPut, call: putRecordCall}, "ended": {prepare: recordEnded, call: putRecordCall}},
	"erase": {"one of two": {prepare: recordsTwo(recordPut), call: eraseCall}, "ended": {prepare: recordsTwo(recordEnded), call: eraseCall}},
	"open":  {"record": {call: openForRecordCall}, "its next": {prepare: recordEnded, call: openForRecordCall}},
	"move":  {"of a record": {prepare: recordReported, call: clerkCall(statemachine.Server, statemachine.Settle)}},
}

// aRecord is a record with a name that needs care, as it was read.
func aRecord(t *testing.T, st *store.Store) tasks.RecordWrite {
	t.Helper()
	w := tasks.RecordWrite{
		Record: task.Record{Kind: "series", Name: "a:b c", Value: "v", Due: task.Moment(noon.Add(-second))}, Call: conn.NewToken(), Watched: true,
	}
	found, err := st.RecordsNamed(t.Context(), w.Kind, []string{w.Name})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 {
		w.Version, w.Ended = found[0].Version, found[0].Ended
	}
	return w
}

func putRecordCall(t *testing.T, st *store.Store) step {
	t.Helper()
	w := aRecord(t, st)
	return func() (any, error) { err := st.PutRecord(t.Context(), &w); return w.Version, err }
}

func eraseCall(t *testing.T, st *store.Store) step {
	t.Helper()
	w := aRecord(t, st)
	return done(func() error { return st.EraseRecord(t.Context(), w.Kind, w.Name, w.Version) })
}

func openForRecordCall(t *testing.T, st *store.Store) step {
	t.Helper()
	w := aRecord(t, st)
	return func() (any, error) {
		opened, err := st.OpenAll(t.Context(), tasks.OpenRequest{Key: w.Call, Record: &w, Specs: []task.Definition{finite(), finite()}})
		return fmt.Sprint(opened, w.Version, w.Opened), err
	}
}

// recordsTwo has another record beside.
func recordsTwo(prepare func(*testing.T, *storetest.Space)) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		prepare(t, sp)
		other := tasks.RecordWrite{Record: task.Record{Kind: "series", Name: "b", Due: task.Moment(noon.Add(second))}, Call: "b"}
		if err := sp.Store.PutRecord(t.Context(), &other); err != nil {
			t.Fatal(err)
		}
	}
}

func recordPut(t *testing.T, sp *storetest.Space) { t.Helper(); putRecordCall(t, sp.Store).must(t) }

// recordReported has opened two tasks for the record, the first of which was executed.
func recordReported(t *testing.T, sp *storetest.Space) {
	t.Helper()
	openForRecordCall(t, sp.Store).must(t)
	claimCall(1)(t, sp.Store).must(t)
	sp.Report(t, &tasks.Claimed{Task: sp.Task(t, 1).Task}, "out", "")
}

func recordEnded(t *testing.T, sp *storetest.Space) {
	t.Helper()
	recordReported(t, sp)
	must(t, sp, 1, statemachine.Server, statemachine.Settle)
}

// TestRecord: a record is written as it was read or not at all, is read by name and when it is due, and knows what was
// opened for it.
func TestRecord(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	ctx := t.Context()
	later := tasks.RecordWrite{Record: task.Record{Kind: "series", Name: "b", Value: "2", Due: task.Moment(noon.Add(3 * second))}, Call: "x"}
	if err := sp.Store.PutRecord(ctx, &later); err != nil {
		t.Fatal(err)
	}
	openForRecordCall(t, sp.Store).must(t)
	w := aRecord(t, sp.Store)
	p, err := sp.Store.PendingRecords(ctx, "series", 9)
	want := tasks.Pending{Now: noon, Next: noon.Add(3 * second), Total: 2, Epoch: 1, Records: []task.Record{{
		Kind: "series", Name: "a:b c", Version: w.Version, Value: "v", Due: task.Moment(noon.Add(-second)), Opened: []int64{1, 2},
	}}}
	if diff := cmp.Diff(want, p); diff != "" || err != nil {
		t.Errorf("pending (- want, + got), error %v:\n%s", err, diff)
	}
	if got := sp.Task(t, 1).Fields; got["record"] != "series:a:b c" || got["plan"] != "r" {
		t.Errorf("task %v", got)
	}
	stale := w
	stale.Version, stale.Call = w.Version-1, "y"
	_, opens := sp.Store.OpenAll(ctx, tasks.OpenRequest{Key: "k", Record: &stale, Specs: []task.Definition{finite()}})
	for _, err := range []error{
		sp.Store.PutRecord(ctx, &stale), opens, sp.Store.EraseRecord(ctx, w.Kind, w.Name, stale.Version),
	} {
		if !errors.Is(err, task.ErrRecordChanged) {
			t.Errorf("as it was before: error %v", err)
		}
	}
	w.Due, w.Call = task.Record{}.Due, "z"
	if err := sp.Store.PutRecord(ctx, &w); err != nil || len(w.Opened) != 0 {
		t.Errorf("%+v, error %v", w, err)
	}
	if found, err := sp.Store.RecordsNamed(ctx, "series", []string{"none", "a:b c"}); err != nil || len(found) != 1 ||
		found[0].Version != w.Version || !slices.Equal(found[0].Opened, []int64{1, 2}) || !found[0].Due.IsZero() {
		t.Errorf("found %+v, error %v", found, err)
	}
	if n, err := sp.Store.LastID(ctx); n != 2 || err != nil {
		t.Errorf("%d tasks, error %v", n, err)
	}
	for after, want := range map[string][]string{"": {"a:b c", "b"}, "a:b c": {"b"}, "b": {}} {
		if got, err := sp.Store.RecordNames(ctx, "series", after, 5); err != nil || !slices.Equal(got, want) {
			t.Errorf("behind %q: %q, error %v", after, got, err)
		}
	}
}

// TestRecordHearsOfEnds: the end of a watched task makes its record pending, until a write has known of it. Another end meanwhile is
// not forgotten, and a record that is gone does not come back.
func TestRecordHearsOfEnds(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	recordPut(t, sp)
	recordEnded(t, sp)
	pending := func() []task.Record {
		p, err := sp.Store.PendingRecords(t.Context(), "series", 9)
		if err != nil {
			t.Fatal(err)
		}
		return p.Records
	}
	read := aRecord(t, sp.Store)
	read.Due = task.Record{}.Due
	if got := pending(); len(got) != 1 || got[0].Ended != 1 {
		t.Fatalf("pending %+v", got)
	}
	must(t, sp, 2, statemachine.Manager, statemachine.Cancel)
	if err := sp.Store.PutRecord(t.Context(), &read); err != nil {
		t.Fatal(err)
	}
	got := pending()
	if len(got) != 1 || got[0].Ended != 2 || !got[0].Due.IsZero() {
		t.Fatalf("pending %+v", got)
	}
	read.Ended, read.Call = 2, "other"
	if err := sp.Store.PutRecord(t.Context(), &read); err != nil || len(pending()) != 0 {
		t.Errorf("pending %+v, error %v", pending(), err)
	}
	openForRecordCall(t, sp.Store).must(t)
	eraseCall(t, sp.Store).must(t)
	must(t, sp, 3, statemachine.Manager, statemachine.Cancel)
	if got := dump(t, sp); got["records_ended:series"] != "" || got["record:series:a:b c"] != "" || len(pending()) != 0 {
		t.Errorf("a removed record: %v", got)
	}
}

// TestRecordRetry: the retry of a task that was opened for a record is a task like any other.
func TestRecordRetry(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	recordEnded(t, sp)
	d := storetest.Spec()
	d.RetryOf = 1
	ids, err := sp.Store.Open(t.Context(), tasks.OpenRequest{Key: "r", Specs: []task.Definition{d}})
	if err != nil || len(ids) != 1 || sp.Task(t, ids[0]).Fields["record"] != "" {
		t.Errorf("opened %v, error %v", ids, err)
	}
}

// TestRecordRace: of many who write a record as they have read it, one does, and its tasks alone are there.
func TestRecordRace(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	const writers, rounds = 8, 20
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range rounds {
				w := aRecord(t, sp.Store)
				w.Value = fmt.Sprint(len(w.Value))
				_, err := sp.Store.OpenAll(t.Context(), tasks.OpenRequest{Key: w.Call, Record: &w, Specs: []task.Definition{storetest.Spec()}})
				for errors.Is(err, task.ErrRecordChanged) {
					again := aRecord(t, sp.Store)
					w.Version, w.Call = again.Version, again.Call
					_, err = sp.Store.OpenAll(t.Context(), tasks.OpenRequest{Key: w.Call, Record: &w, Specs: []task.Definition{storetest.Spec()}})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n, err := sp.Store.LastID(t.Context()); n != writers*rounds || err != nil {
		t.Errorf("%d tasks, want %d, error %v", n, writers*rounds, err)
	}
}

// recordFully leaves a record that is due, one of whose tasks has ended.
func recordFully(t *testing.T, sp *storetest.Space) {
	t.Helper()
	openForRecordCall(t, sp.Store).must(t)
	w := aRecord(t, sp.Store)
	found, err := sp.Store.RecordsNamed(t.Context(), w.Kind, []string{w.Name})
	if err != nil {
		t.Fatal(err)
	}
	must(t, sp, found[0].Opened[0], statemachine.Manager, statemachine.Cancel)
}

// The Redis inside the server knows records too.
func TestRecordEmbedded(t *testing.T) {
	t.Parallel()
	sp := onEmbedded(t)
	recordFully(t, sp)
	p, err := sp.Store.PendingRecords(t.Context(), task.KindSeries, 5)
	if err != nil || len(p.Records) != 1 || p.Records[0].Ended != 1 || p.Total != 1 {
		t.Errorf("%+v, error %v", p, err)
	}
	if names, err := sp.Store.RecordNames(t.Context(), task.KindSeries, "", 5); err != nil || len(names) != 1 {
		t.Errorf("names %q, error %v", names, err)
	}
	eraseCall(t, sp.Store).must(t)
}
