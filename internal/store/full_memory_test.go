package store_test

import (
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
)

// What others need in order to end something passes while the memory of Redis is
// full: a new epoch, a new life, the leases of workers and managers.
func TestMemoryIsFull(t *testing.T) {
	t.Parallel()
	sp := storetest.On(t, redistest.Start(t))
	ids := sp.Open(t, storetest.Spec())
	h, w := fleet.NewHandling(5*time.Second), &fleet.HandlingWatch{}
	if err := sp.Store.BeginHandling(t.Context(), h, w); err != nil {
		t.Fatal(err)
	}
	sp.Raw.ConfigSet(t.Context(), "maxmemory", "1")
	defer sp.Raw.ConfigSet(t.Context(), "maxmemory", "0")
	if _, err := sp.Store.Open(t.Context(), tasks.OpenRequest{Key: "more", Specs: []task.Definition{storetest.Spec()}}); err == nil {
		t.Error("a task was opened: the memory is not full")
	}
	if err := sp.Store.KeepHandling(t.Context(), h, w); err != nil {
		t.Errorf("a manager cannot renew its lease: %v", err)
	}
	if _, err := arrive(t.Context(), sp.Store, "another"); err != nil {
		t.Errorf("a new life is not noted: %v", err)
	}
	sp.Store.Remember(conn.History{Epoch: 1, Seq: 99, ID: ids[0]})
	if e, err := sp.Store.OpenEpoch(t.Context(), false); err != nil || e.Epoch != 2 {
		t.Errorf("epoch %+v, error %v", e, err)
	}
	if _, err := sp.Store.Register(t.Context(), storetest.Registration("w")); err != nil {
		t.Errorf("a worker cannot register: %v", err)
	}
}
