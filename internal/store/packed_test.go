package store_test

import (
	"reflect"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

// A small task that Redis keeps packed is read whole for a decision; what is decided from is the same as when its fields are
// searched for.
func TestPackedTaskIsReadTheSame(t *testing.T) {
	t.Parallel()
	sp := storetest.On(t, redistest.Start(t))
	id := sp.Open(t, storetest.Spec())[0]
	worker := sp.Register(t, "w")
	held := sp.ClaimUnder(t, worker, 1)
	sp.Report(t, &held[0], "output", "it failed")
	key := sp.Key("task:1")
	read := func(limit, encoding string) any {
		t.Helper()
		if err := sp.Raw.ConfigSet(t.Context(), "hash-max-listpack-value", limit).Err(); err != nil {
			t.Fatal(err)
		}
		dump := sp.Raw.Dump(t.Context(), key).Val() // what is restored is packed as the limit says
		if err := sp.Raw.RestoreReplace(t.Context(), key, 0, dump).Err(); err != nil {
			t.Fatal(err)
		}
		if is := sp.Raw.ObjectEncoding(t.Context(), key).Val(); is != encoding {
			t.Fatalf("the task is kept as %s, want %s", is, encoding)
		}
		batch, err := sp.Store.Listed(t.Context(), statemachine.Executed, 0, 10)
		if err != nil || len(batch.Tasks) != 1 || batch.Tasks[0].ID != id {
			t.Fatalf("read %+v, error %v", batch, err)
		}
		return batch.Tasks[0]
	}
	searched, packed := read("8", "hashtable"), read("1024", "listpack")
	if !reflect.DeepEqual(searched, packed) {
		t.Errorf("packed:\n%+v\nsearched for:\n%+v", packed, searched)
	}
}
