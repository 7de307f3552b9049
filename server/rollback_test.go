package server

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/ops/audit"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/task"
)

// restarted is a namespace on a Redis that will be started anew, and forget all users but the default one.
func restarted(t *testing.T, srv *redistest.Server) *storetest.Space {
	t.Helper()
	sp := &storetest.Space{Server: srv, Namespace: redistest.Namespace(t), Where: storetest.Where(srv)}
	sp.Store = sp.Dial(t)
	return sp
}

// openSoon opens tasks as managers do: again and again while Redis is away, or not confirmed.
func openSoon(t *testing.T, st *store.Store, n int) (ids []int64) {
	t.Helper()
	req := tasks.OpenRequest{Key: conn.NewToken()}
	for range n {
		req.Specs = append(req.Specs, storetest.Spec())
	}
	wait.Eventually(t, 30*time.Second, func() bool {
		var err error
		if ids, err = st.Open(t.Context(), req); err != nil && !errors.Is(err, task.ErrUnreachable) {
			t.Fatal(err)
		}
		return err == nil
	}, "no task can be opened")
	return ids
}

func checkUnique(t *testing.T, batches ...[]int64) {
	t.Helper()
	given := map[int64]bool{}
	for _, ids := range batches {
		for _, id := range ids {
			if given[id] {
				t.Errorf("id %d is given out twice", id)
			}
			given[id] = true
		}
	}
}

// verified says that verify finds nothing that is wrong.
func verified(t *testing.T, st *store.Store) {
	t.Helper()
	if report, err := audit.Verify(t.Context(), st); err != nil || !report.OK() {
		t.Errorf("verify finds %+v, error %v", report.Violations, err)
	}
}

// Redis loses what was opened last, by a client that is gone, after the server looked last, and again after the server has confirmed
// it. The ids are not given out a second time, with a server that has outlived that as with another one.
func TestRollbackGivesNoIDTwice(t *testing.T) {
	t.Parallel()
	for name, outlived := range map[string]bool{"server outlived it": true, "new server": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t, redistest.WithAppendOnly())
			sp := restarted(t, srv)
			s, _ := newServer(t, sp)
			kept := openSoon(t, sp.Dial(t), 5)
			pass(t, s)
			part, size := appendOnlyFile(t, srv)
			lost := openSoon(t, sp.Dial(t), 3)
			srv.Kill(t)
			if err := os.Truncate(part, size); err != nil {
				t.Fatal(err)
			}
			srv.Restart(t)
			first := sp.Dial(t)
			if _, err := first.Open(t.Context(), tasks.OpenRequest{Key: "early", Specs: []task.Definition{storetest.Spec()}}); !errors.Is(err, conn.ErrUnconfirmed) {
				t.Errorf("opened before a server has looked: error %v", err)
			}
			if !outlived {
				s, _ = newServer(t, sp, func(o *options) { o.store = sp.Dial(t) })
				s.history.since = time.Now().Add(-witnessPatience)
			}
			pass(t, s)
			s.history.watch(t.Context(), nil)
			again := openSoon(t, first, 3)
			checkUnique(t, kept, lost, again)
			verified(t, first)
		})
	}
}

// appendOnlyFile is the file that Redis writes, and how long it is.
func appendOnlyFile(t *testing.T, srv *redistest.Server) (string, int64) {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(filepath.Dir(srv.Socket()), "appendonlydir", "*.incr.aof"))
	if err != nil || len(parts) != 1 {
		t.Fatalf("append-only files %v, error %v; want one", parts, err)
	}
	info, err := os.Stat(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	return parts[0], info.Size()
}

// A replica is promoted while its master goes on: what both open has ids of its own.
func TestSplitBrainGivesNoIDTwice(t *testing.T) {
	t.Parallel()
	master, replica := redistest.Start(t, redistest.WithConfig("repl-diskless-sync-delay", "0")), redistest.Start(t)
	sp := storetest.On(t, master)
	kept := openSoon(t, sp.Store, 5)
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	replica.Do(t, "REPLICAOF", host, port)
	wait.Eventually(t, 20*time.Second, func() bool {
		return replica.Do(t, "HGET", sp.Key("meta"), "seq") == "5"
	}, "the replica does not follow")
	replica.Do(t, "REPLICAOF", "NO", "ONE")
	old := openSoon(t, sp.Store, 4)
	other, err := store.Dial(storetest.Where(replica), sp.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	s, _ := newServer(t, sp, func(o *options) { o.store = other })
	s.history.since = time.Now().Add(-witnessPatience)
	pass(t, s)
	s.history.watch(t.Context(), nil)
	promoted := openSoon(t, other, 4)
	old = append(old, openSoon(t, sp.Store, 4)...)
	checkUnique(t, kept, old, promoted)
	verified(t, other)
}

// What a client in another language has taken before a server looked may mean two tasks: verify says which ids these are.
func TestIDsTakenBeforeAServerLooked(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithAppendOnly())
	sp := restarted(t, srv)
	openSoon(t, sp.Store, 2)
	srv.Kill(t)
	srv.Restart(t)
	st := sp.Dial(t)
	if _, err := st.Open(t.Context(), tasks.OpenRequest{Key: "early", Specs: []task.Definition{storetest.Spec()}}); !errors.Is(err, conn.ErrUnconfirmed) {
		t.Fatalf("error %v, want that no server has looked", err)
	}
	srv.Do(t, "INCR", sp.Key("task_id"))
	if e, err := st.OpenEpoch(t.Context(), true); err != nil || !e.Confirmed {
		t.Fatalf("%+v, error %v", e, err)
	}
	report, err := audit.Verify(t.Context(), st)
	if err != nil || report.OK() || len(report.Violations) != 1 || report.Violations[0].Kind != audit.Reused {
		t.Errorf("verify finds %+v, error %v; want the id that was taken", report.Violations, err)
	}
}
