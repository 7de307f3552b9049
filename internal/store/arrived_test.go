package store_test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	await "github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/task"
)

// A connection that was made when the life of Redis could not be noted is kept, and
// the life is noted before the first change.
func TestLateArrival(t *testing.T) {
	t.Parallel()
	hindrances := map[string]struct{ begin, end []string }{
		"replica":          {[]string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}},
		"without replicas": {[]string{"CONFIG", "SET", "min-replicas-to-write", "1"}, []string{"CONFIG", "SET", "min-replicas-to-write", "0"}},
	}
	for name, h := range hindrances {
		for _, durability := range []string{config.DurabilityFast, config.DurabilityHA} {
			t.Run(name+", "+durability, func(t *testing.T) {
				t.Parallel()
				srv := redistest.Start(t)
				srv.Do(t, h.begin...)
				sp := storetest.On(t, srv)
				st := dialDurable(t, sp, durability)
				connectBoth(t, st)
				srv.Do(t, h.end...)
				_, err := st.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{storetest.Spec()}})
				if err != nil && durability == config.DurabilityFast { // else no replica confirms it
					t.Fatal(err)
				}
				if lives := sp.Raw.HGet(t.Context(), sp.Key("meta"), "lives").Val(); !strings.HasSuffix(lives, ".1:0") {
					t.Errorf("lives %q, want one that begins before the first change", lives)
				}
			})
		}
	}
}

func dialDurable(t *testing.T, sp *storetest.Space, durability string) *store.Store {
	t.Helper()
	where := sp.Where
	where.Durability, where.ReplicationTimeout = durability, 50*time.Millisecond
	st, err := store.Dial(where, sp.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// connectBoth makes the connections of st for one command and for several, by what
// only reads.
func connectBoth(t *testing.T, st *store.Store) {
	t.Helper()
	if _, _, err := st.Inspect(t.Context(), []int64{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.TasksByID(t.Context(), []int64{1}); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, st *store.Store) {
	t.Helper()
	if _, err := st.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{storetest.Spec()}}); err != nil {
		t.Fatal(err)
	}
}

// A replica has the lives of its master, and its replication id. Its own begins when
// it is promoted.
func TestPromotedReplica(t *testing.T) {
	t.Parallel()
	master, replica := redistest.Start(t, redistest.WithConfig("repl-diskless-sync-delay", "0")), redistest.Start(t)
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	sp := storetest.On(t, master)
	replica.Do(t, "REPLICAOF", host, port)
	await.Eventually(t, 10*time.Second, func() bool { // the first replica changes the replication id, which begins a life
		return strings.Contains(fmt.Sprint(replica.Do(t, "INFO", "replication")), "master_link_status:up")
	}, "the replica does not connect")
	for n := range 2 {
		open(t, sp.Dial(t))
		await.Eventually(t, 10*time.Second, func() bool {
			return fmt.Sprint(replica.Do(t, "HGET", sp.Key("meta"), "seq")) == strconv.Itoa(n+1)
		}, "the replica does not follow")
	}
	st, err := store.Dial(storetest.Where(replica), sp.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	connectBoth(t, st)
	replica.Do(t, "REPLICAOF", "NO", "ONE")
	if e, err := st.OpenEpoch(t.Context(), true); err != nil || !e.Confirmed {
		t.Fatalf("%+v, error %v; want the life of Redis confirmed", e, err)
	}
	open(t, st)
	if lives := fmt.Sprint(replica.Do(t, "HGET", sp.Key("meta"), "lives")); !strings.HasSuffix(lives, ":2") {
		t.Errorf("lives %q, want another one that begins at 2", lives)
	}
}

// Once the life is noted, a call is one command.
func TestArrivalIsOnce(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	sp := storetest.On(t, srv)
	sp.Open(t, storetest.Spec())
	srv.Do(t, "CONFIG", "RESETSTAT")
	const calls = 20
	for range calls {
		sp.Open(t, storetest.Spec())
	}
	stats := sp.Raw.Info(t.Context(), "commandstats").Val()
	if strings.Contains(stats, "cmdstat_info:") || !strings.Contains(stats, "cmdstat_evalsha:calls=20,") {
		t.Errorf("%d calls are\n%s", calls, stats)
	}
}
