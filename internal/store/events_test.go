package store_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	for range 3 {
		sp.Open(t, storetest.Spec())
	}
	first, err := sp.Store.Events(t.Context(), 0, 2)
	if err != nil || len(first) != 2 || first[0].Seq != 1 || first[1].ID != 2 || first[1].Event != statemachine.Create {
		t.Fatal(first, err)
	}
	rest, err := sp.Store.Events(t.Context(), first[1].Seq+1, 2)
	if err != nil || len(rest) != 1 || rest[0].Seq != 3 {
		t.Error(rest, err)
	}
	if oldest, newest, err := sp.Store.EventSpan(t.Context()); oldest != 1 || newest != 3 || err != nil {
		t.Errorf("from %d to %d, %v, want 1 to 3", oldest, newest, err)
	}
	if err := sp.Store.PublishEvents(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if oldest, newest, err := sp.Store.EventSpan(t.Context()); oldest != 0 || newest != 0 || err != nil {
		t.Errorf("from %d to %d, %v, want none", oldest, newest, err)
	}
	if none, err := sp.Store.Events(t.Context(), 0, 100_000); err != nil || len(none) != 0 || cap(none) > 100 {
		t.Error("events that are not kept any more:", none, err)
	}
}

// TestEventsShareEntries: what befell tasks alike in one call is one entry of the stream, and an event of each with a number of its
// own. Events may be asked for from the middle of an entry on, and a task that moves twice does so in that order.
func TestEventsShareEntries(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	ids := sp.Open(t, storetest.Spec(), storetest.Spec(), storetest.Spec())
	sp.Claim(t, "w", 3)
	if n := sp.Raw.XLen(t.Context(), sp.Key("events")).Val(); n != 2 {
		t.Errorf("%d entries, want one of the opening and one of the claim", n)
	}
	got, err := sp.Store.Events(t.Context(), 2, 3)
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	for i, want := range []task.Event{
		{Seq: 2, ID: ids[1], Event: statemachine.Create}, {Seq: 3, ID: ids[2], Event: statemachine.Create}, {Seq: 4, ID: ids[0], Event: statemachine.Claim},
	} {
		if e := got[i]; e.Seq != want.Seq || e.ID != want.ID || e.Event != want.Event || e.Round != 0 || e.Err != nil {
			t.Errorf("event %d is %+v, want %+v", i, e, want)
		}
	}
	if oldest, newest, err := sp.Store.EventSpan(t.Context()); oldest != 1 || newest != 6 || err != nil {
		t.Errorf("from %d to %d, %v, want 1 to 6", oldest, newest, err)
	}
}

// TestEventsOfTwoMoves: the second move of a task in a call has the higher number, also where others share the entry of the first.
func TestEventsOfTwoMoves(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	ids := sp.Open(t, storetest.Spec(), storetest.Spec())
	var commits []tasks.Commit
	decide := func(seen *tasks.TaskHeader, event statemachine.Event) {
		t.Helper()
		m, err := statemachine.Decide(&seen.Task, statemachine.Occurrence{Event: event, Actor: statemachine.Manager}, 0)
		if err != nil {
			t.Fatal(err)
		}
		commits = append(commits, tasks.Commit{Move: m, Writer: "m", Bucket: seen.Bucket})
		seen.State, seen.Rev = m.To, seen.Rev+1
	}
	one, two := sp.Task(t, ids[0]), sp.Task(t, ids[1])
	decide(one, statemachine.Hold)
	decide(one, statemachine.Unblock)
	decide(two, statemachine.Hold)
	decide(two, statemachine.Unblock)
	decide(one, statemachine.Hold)
	if _, err := sp.Store.Apply(t.Context(), commits...); err != nil {
		t.Fatal(err)
	}
	events, err := sp.Store.Events(t.Context(), 3, 10)
	if err != nil {
		t.Fatal(err)
	}
	steps := map[int64][]statemachine.Event{}
	for i := range events {
		steps[events[i].ID] = append(steps[events[i].ID], events[i].Event)
	}
	want := map[int64][]statemachine.Event{
		ids[0]: {statemachine.Hold, statemachine.Unblock, statemachine.Hold}, ids[1]: {statemachine.Hold, statemachine.Unblock},
	}
	if !maps.EqualFunc(steps, want, slices.Equal) {
		t.Errorf("the steps are told as %v, want %v", steps, want)
	}
}

// TestForeignEvents reads what another client may have written to the stream.
func TestForeignEvents(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	whole := map[string]string{
		"id": "12", "round": "3", "from": "running", "to": "executed", "event": "report", "actor": "worker", "by": "w1 ", "at": "1.5",
	}
	add := func(entry string, changed ...string) {
		t.Helper()
		fields := maps.Clone(whole)
		for pair := range slices.Chunk(changed, 2) {
			fields[pair[0]] = pair[1]
		}
		if err := sp.Raw.XAdd(t.Context(), &redis.XAddArgs{Stream: sp.Key("events"), ID: entry, Values: fields}).Err(); err != nil {
			t.Fatal(err)
		}
	}
	add("44-0")
	add("45-7", "at", "then", "event", "dance")
	add("46-0", "round", "-1")
	add("47-0", "round", "-1", "event", "repair")
	add("48-0", "id", "0")
	add("49-0", "id", "x", "event", "repair")
	add("18446744073709551615-1") // Redis gives out no number after it
	want := task.Event{
		Seq: 44, ID: 12, Round: 3, At: time.Unix(1, 5e8).UTC(), From: statemachine.Running, To: statemachine.Executed,
		Event: statemachine.Report, Actor: statemachine.Worker, By: "w1",
	}
	got, err := sp.Store.Events(t.Context(), 0, 100)
	if err != nil || len(got) != 6 || !cmp.Equal(got[0], want) {
		t.Fatalf("%+v, %v", got, err)
	}
	want.Seq, want.At, want.Event = 45, time.Time{}, "dance"
	if !cmp.Equal(got[1], want) {
		t.Errorf("got %+v, want %+v", got[1], want)
	}
	for i, field := range map[int]string{2: "round", 3: "", 4: "id", 5: "id"} {
		wrong, _ := errors.AsType[*statemachine.FieldError](got[i].Err)
		if (wrong == nil) != (field == "") || wrong != nil && wrong.Field != field {
			t.Errorf("event %d: %v, want one about %q", got[i].Seq, got[i].Err, field)
		}
	}
	if got[3].Round != -1 {
		t.Errorf("round %d of a repair, want -1", got[3].Round)
	}
	if oldest, newest, err := sp.Store.EventSpan(t.Context()); oldest != 44 || newest != 49 || err != nil {
		t.Errorf("from %d to %d, %v, want 44 to 49", oldest, newest, err)
	}
}
