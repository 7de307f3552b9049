package redisfaults

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/task"
)

// crew are two clients of a Redis Cluster that have asked a replica where the slots
// are, so that they have connections to it when it is promoted.
type crew struct {
	cluster    *cluster
	namespace  string
	idle, busy *store.Store
	// master serves the namespace at first, and replica follows it.
	master, replica *redistest.Server
}

func newCrew(t *testing.T) *crew {
	t.Helper()
	c := &crew{cluster: startCluster(t), namespace: "{" + redistest.Namespace(t) + "}"}
	c.master = c.cluster.ownerOf(t, c.namespace)
	nodes := c.cluster.nodes
	c.replica = nodes[slices.Index(nodes, c.master)+len(nodes)/2]
	where := c.cluster.redis()
	where.ClusterAddrs = []string{c.replica.Addr()}
	for _, st := range []**store.Store{&c.idle, &c.busy} {
		var err error
		if *st, err = store.Dial(where, c.namespace); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = (*st).Close() })
		if err := c.open(t, *st); err != nil {
			t.Fatal(err)
		}
	}
	c.cluster.awaitSync(t)
	return c
}

func (c *crew) open(t *testing.T, st *store.Store) error {
	t.Helper()
	_, err := st.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{storetest.Spec()}})
	return err
}

func (c *crew) mustOpen(t *testing.T, st *store.Store, n int) {
	t.Helper()
	for range n {
		if err := c.open(t, st); err != nil {
			t.Fatal(err)
		}
	}
}

// meta is a field of the namespace where node has it.
func (c *crew) meta(t *testing.T, node *redistest.Server, field string) string {
	t.Helper()
	return fmt.Sprint(node.Do(t, "HGET", c.namespace+":meta", field))
}

// What a failover of a Redis Cluster has lost is noticed by each program that has seen it, also
// when others have counted on before, over connections that are older than the failover.
func TestClusterLossIsCaughtUp(t *testing.T) {
	t.Parallel()
	c := newCrew(t)
	c.replica.Pause(t)
	c.master.Do(t, "CLIENT", "KILL", "TYPE", "replica")
	c.mustOpen(t, c.idle, 8)
	seen, _ := c.idle.History()
	c.master.Kill(t)
	c.replica.Resume(t)
	now := c.cluster.awaitFailover(t, c.namespace, c.master)
	start, err := strconv.ParseInt(c.meta(t, now, "seq"), 10, 64)
	if err != nil || start >= seen.Seq {
		t.Fatalf("nothing is lost: the new master is at %d, error %v, and %v was seen", start, err, seen)
	}
	wait.Eventually(t, patience, func() bool {
		e, err := c.busy.OpenEpoch(t.Context(), true)
		return err == nil && e.Confirmed
	}, "the new master is not confirmed")
	c.mustOpen(t, c.busy, int(seen.Seq-start)+2)
	if lives := c.meta(t, now, "lives"); !strings.HasSuffix(lives, fmt.Sprintf(".2:%d", start)) {
		t.Errorf("lives %q, want a second one that begins at %d", lives, start)
	}
	if _, _, err := c.idle.Inspect(t.Context(), []int64{1}); !errors.Is(err, conn.ErrHistory) {
		t.Errorf("error %v, want one of the history", err)
	}
}

// A master that was a replica for a while begins another life, though neither it nor
// its connections have ended, and the client has heard of nothing.
func TestClusterMasterComesBack(t *testing.T) {
	t.Parallel()
	c := newCrew(t)
	for _, next := range []*redistest.Server{c.replica, c.master} {
		old := c.cluster.ownerOf(t, c.namespace)
		next.Do(t, "CLUSTER", "FAILOVER", "TAKEOVER") // the others would not vote so soon again
		c.cluster.awaitFailover(t, c.namespace, old)
		c.cluster.awaitSync(t)
	}
	if lives := c.meta(t, c.master, "lives"); !strings.HasSuffix(lives, ".1:0") {
		t.Fatalf("lives %q, want the first one: nobody has called", lives)
	}
	wait.Eventually(t, 5*time.Second, func() bool {
		if err := c.open(t, c.idle); err != nil && !errors.Is(err, conn.ErrUnconfirmed) {
			t.Fatal(err)
		}
		return strings.Contains(c.meta(t, c.master, "lives"), ".2:")
	}, "the other life is not noted")
}
