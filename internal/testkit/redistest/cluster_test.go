package redistest_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
)

// A master is killed: its replica serves its keys, and it comes back as a replica.
func TestClusterReplacesAKilledMaster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	where := cluster.Redis()
	if !where.Cluster() || len(cluster.Nodes()) != 6 {
		t.Errorf("reached by %v", where)
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: where.ClusterAddrs})
	defer func() { _ = c.Close() }()
	for _, key := range []string{"a", "b", "c", "d"} {
		if err := c.Set(t.Context(), key, "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	old := cluster.Owner(t, "a")
	old.Kill(t)
	owner := cluster.AwaitFailover(t, "a", old)
	if got := owner.Do(t, "GET", "a"); got != "v" {
		t.Errorf("the new master has %v", got)
	}
	old.Restart(t)
	cluster.AwaitSync(t)
	if cluster.Owner(t, "a") != owner {
		t.Error("the old master is master again")
	}
}
