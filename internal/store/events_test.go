package store_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

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
	if none, err := sp.Store.Events(t.Context(), 0, 2); err != nil || len(none) != 0 {
		t.Error("events that are not kept any more:", none, err)
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
