package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
)

// TestHeartbeatHasItsOwnConnection: with all other connections in use, the
// lease is renewed at once.
func TestHeartbeatHasItsOwnConnection(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	w := sp.Register(t, "w")
	st := sp.Dial(t, conn.WithPoolSize(1))
	release, err := store.Occupy(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	within := func(d time.Duration) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		t.Cleanup(cancel)
		return ctx
	}
	if _, err := st.Lease(within(300 * time.Millisecond)); err == nil {
		t.Error("the only connection was not in use")
	}
	if _, err := st.Renew(within(30*time.Second), w, fleet.Heartbeat{State: task.WorkerReady}); err != nil {
		t.Error(err)
	}
	if _, err := storetest.Wait(within(30*time.Second), st, waitFor("w"), time.Millisecond); err != nil {
		t.Errorf("a wait needs a connection of its own: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

// TestAway: only a Redis that is not there is away, not one that is slow,
// unreachable for this program only, or may have moved.
func TestAway(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	st, err := store.Dial(storetest.Where(server), "ns", conn.WithRetries(-1)) // users are lost at a restart
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	away := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := st.LastID(ctx)
		return st.Away(t.Context(), err)
	}
	if away() || st.Away(t.Context(), errors.New("else")) {
		t.Error("away, but it answers")
	}
	server.Pause(t)
	if away() {
		t.Error("away, but it is slow only")
	}
	server.Resume(t)
	server.Kill(t)
	if !away() {
		t.Error("not away, but nothing listens")
	}
	if st.Away(t.Context(), errors.New("else")) {
		t.Error("away after an error that is not of the connection")
	}
	for _, outlast := range []bool{true, false} {
		_, err := st.Renew(t.Context(), fleet.Session{Name: "w"}, fleet.Heartbeat{Outlast: outlast})
		if !errors.Is(err, task.ErrUnreachable) || errors.Is(err, conn.ErrAway) != outlast || strings.Contains(err.Error(), "away") {
			t.Errorf("renewed by a worker that asks (%v): %v", outlast, err)
		}
	}
	server.Restart(t)
	if away() {
		t.Error("away, but it is back")
	}
}

// TestNotAway: a connection that breaks at once is no proof.
func TestNotAway(t *testing.T) {
	t.Parallel()
	far, proxy := through(t, storetest.New(t))
	proxy.Down()
	st := far.Dial(t, conn.WithRetries(-1))
	_, err := st.LastID(t.Context())
	if !errors.Is(err, task.ErrUnreachable) || st.Away(t.Context(), err) {
		t.Errorf("away after %v", err)
	}
	elsewhere := *far
	elsewhere.Where.SentinelMaster, elsewhere.Where.SentinelAddrs = "m", []string{"127.0.0.1:1"}
	if elsewhere.Dial(t).Away(t.Context(), task.ErrUnreachable) {
		t.Error("away, but a Sentinel may have chosen another")
	}
}

// TestAwaySocket: a socket file that is gone is a Redis that is gone.
func TestAwaySocket(t *testing.T) {
	t.Parallel()
	where := storetest.Where(redistest.Shared(t))
	where.Host = t.TempDir() + "/redis.sock"
	st, err := store.Dial(where, "ns", conn.WithRetries(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	if _, err = st.LastID(t.Context()); !st.Away(t.Context(), err) {
		t.Errorf("not away after %v", err)
	}
}

// TestDelayedRegistration: a registration whose first try was slow may come
// after the worker has begun to work, and must not end its session.
func TestDelayedRegistration(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	w := sp.Register(t, "w")
	sp.Open(t, storetest.Spec())
	sp.ClaimUnder(t, w, 1)
	r, err := sp.Store.Register(t.Context(), storetest.Registration("w"))
	if err != nil || r.Session != w {
		t.Errorf("registered %+v, error %v", r, err)
	}
	sp.Renew(t, w)
	// Giving the session up is said by its incarnation.
	again := storetest.Registration("w")
	again.Replaces = w.Incarnation
	if r, err = sp.Store.Register(t.Context(), again); err != nil || len(r.Former) != 1 {
		t.Errorf("registered %+v, error %v", r, err)
	}
}
