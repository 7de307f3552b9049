package redisfaults

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

// B12: on a Redis Cluster a namespace in braces is whole; the master of its keys is
// killed and its replica takes over; then the slot of its keys moves to another
// master, under load.
func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	namespace := "{" + redistest.Namespace(t) + "}"
	tm := newTeamIn(t, nodes.redis(), namespace)
	stop := tm.load(t)
	old, begun := nodes.ownerOf(t, namespace), time.Now()
	old.Kill(t)
	tm.recovers(t, "after the master was killed, Cluster", begun, failoverBar)
	nodes.awaitFailover(t, namespace, old)
	old.Restart(t)
	nodes.awaitSync(t)
	nodes.move(t, namespace)
	tm.recovers(t, "after the slot was moved, Cluster", time.Now(), restartBar)
	stop()
	tm.settled(t)
}

// A master is killed: its replica serves its keys, and it comes back as a replica.
func TestClusterReplacesAKilledMaster(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	where := nodes.redis()
	if !where.Cluster() || len(nodes.nodes) != 6 {
		t.Errorf("reached by %v", where)
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: where.ClusterAddrs})
	defer func() { _ = c.Close() }()
	for _, key := range []string{"a", "b", "c", "d"} {
		if err := c.Set(t.Context(), key, "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	old := nodes.ownerOf(t, "a")
	old.Kill(t)
	owner := nodes.awaitFailover(t, "a", old)
	if got := owner.Do(t, "GET", "a"); got != "v" {
		t.Errorf("the new master has %v", got)
	}
	old.Restart(t)
	nodes.awaitSync(t)
	if nodes.ownerOf(t, "a") != owner {
		t.Error("the old master is master again")
	}
}
