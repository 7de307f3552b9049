package storetest

import (
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
)

// Orders reach the worker with its next heartbeat, and at once where it listens.
func exerciseOrders(t *testing.T, sp *Space) {
	w := sp.Register(t, "w")
	calls, stop := sp.Store.Calls(t.Context(), "w")
	defer stop()
	order := func(o store.WorkerOrder) store.WorkerInfo {
		t.Helper()
		info, err := sp.Store.OrderWorker(t.Context(), "w", o)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	sp.await(t, calls.Renew, func() { order(store.OrderDrain) })
	if r := sp.Renew(t, w); r.Order != store.OrderDrain {
		t.Errorf("renewed %+v", r)
	}
	if err := sp.Store.Leave(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if w = sp.Register(t, "w"); w.Order != store.OrderDrain {
		t.Errorf("the drain is forgotten: %+v", w)
	}
	if before := order(store.OrderStop); before.Order != store.OrderDrain || before.Name != "w" {
		t.Errorf("was %+v", before)
	}
	if r := sp.Renew(t, w); r.Order != store.OrderStop {
		t.Errorf("renewed %+v", r)
	}
	if err := sp.Store.Leave(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if w = sp.Register(t, "w"); w.Order != store.OrderNone {
		t.Errorf("the stop is remembered: %+v", w)
	}
	order(store.OrderDrain)
	order(store.OrderNone)
	if r := sp.Renew(t, w); r.Order != store.OrderNone {
		t.Errorf("renewed %+v", r)
	}
	if _, err := sp.Store.OrderWorker(t.Context(), "w", "dance"); err == nil {
		t.Error("any order is taken")
	}
}

// await repeats what must be announced: the subscription may come later.
func (sp *Space) await(t *testing.T, hints <-chan struct{}, announce func()) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		announce()
		select {
		case <-hints:
			return
		case <-deadline:
			t.Fatal("nothing was announced")
		case <-tick.C:
		}
	}
}
