package storetest

import (
	"testing"

	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/internal/store"
)

// Registration is a worker of the given name; each name is a process of its own.
func Registration(name string) store.Registration {
	return store.Registration{
		Name: name, Node: "node-1", Host: "host.example", PID: 42, Identity: "start of " + name, Version: "v1",
		Containment: "group", Slots: 2, Labels: []string{"gpu=1"}, MaxThreads: route.NoLimit,
	}
}

// Register begins the session of a worker, which must succeed.
func (sp *Space) Register(tb testing.TB, name string) store.Session {
	tb.Helper()
	r, err := sp.Store.Register(tb.Context(), Registration(name))
	if err != nil || len(r.Former) > 0 {
		tb.Fatalf("registered %+v, error %v", r, err)
	}
	return r.Session
}

// ClaimUnder claims up to n tasks of the default bucket under a session.
func (sp *Space) ClaimUnder(tb testing.TB, w store.Session, n int) []store.Claimed {
	tb.Helper()
	r, err := sp.Store.Claim(tb.Context(), store.ClaimRequest{
		Worker: w.Name, Request: store.NewToken(), Turns: route.Free(store.Bucket{}), Max: n,
		Incarnation: w.Incarnation, Node: "node-1", MaxThreads: route.NoLimit,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return r.Tasks
}
