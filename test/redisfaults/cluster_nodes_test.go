package redisfaults

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

const (
	clusterMasters = 3
	clusterSlots   = 16384
)

// cluster is a Redis Cluster of three masters with a replica each.
type cluster struct {
	// nodes are the first masters, then their first replicas in the same order.
	nodes []*redistest.Server
	ids   []string
}

// startCluster starts the six processes, makes a cluster of them and waits until
// all replicas are in sync. A node counts as dead after 2 s of silence. All keep an
// append-only file, written each second.
func startCluster(tb testing.TB) *cluster {
	tb.Helper()
	c := &cluster{}
	for i := range 2 * clusterMasters {
		bus := strconv.Itoa(hosttest.Port(tb))
		node := redistest.Start(tb, redistest.Replicated(),
			redistest.WithConfig("cluster-enabled", "yes"), redistest.WithConfig("cluster-node-timeout", "2000"),
			redistest.WithConfig("cluster-replica-validity-factor", "0"), redistest.WithConfig("cluster-port", bus))
		c.nodes = append(c.nodes, node)
		c.ids = append(c.ids, fmt.Sprint(node.Do(tb, "CLUSTER", "MYID")))
		node.Do(tb, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		if i > 0 {
			c.nodes[0].Do(tb, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(node.Port()), bus)
		}
	}
	c.join(tb)
	return c
}

// join gives each master its slots and its replica.
func (c *cluster) join(tb testing.TB) {
	tb.Helper()
	for i, node := range c.nodes[:clusterMasters] {
		first, next := i*clusterSlots/clusterMasters, (i+1)*clusterSlots/clusterMasters
		node.Do(tb, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(next-1))
	}
	wait.Eventually(tb, patience, func() bool { return c.all("cluster_known_nodes:6") }, "the nodes do not meet")
	for i, node := range c.nodes[clusterMasters:] {
		wait.Eventually(tb, patience, func() bool {
			_, err := node.Call("CLUSTER", "REPLICATE", c.ids[i])
			return err == nil
		}, "node %s cannot follow", node.Addr())
	}
	c.awaitSync(tb)
}

// redis is how a program reaches the cluster; its namespace must be in braces.
func (c *cluster) redis() config.Redis {
	return config.Redis{
		ClusterAddrs: addrs(c.nodes), DialTimeout: 5 * time.Second, ReadTimeout: 3 * time.Second, WriteTimeout: 3 * time.Second,
	}
}

func (c *cluster) all(lines ...string) bool {
	for _, node := range c.nodes {
		if !node.Reports("CLUSTER INFO", lines...) {
			return false
		}
	}
	return true
}

// awaitSync waits until all slots are served, and each of three masters is
// followed by a replica. All six processes must run.
func (c *cluster) awaitSync(tb testing.TB) {
	tb.Helper()
	wait.Eventually(tb, patience, func() bool {
		masters, followed := 0, 0
		for _, node := range c.nodes {
			switch {
			case node.Reports("INFO replication", "role:master", "connected_slaves:1"):
				masters++
			case node.Reports("INFO replication", "role:slave", "master_link_status:up", "master_sync_in_progress:0"):
				followed++
			}
		}
		return masters == clusterMasters && followed == clusterMasters && c.all("cluster_state:ok")
	}, "the cluster of %v does not agree", addrs(c.nodes))
}

// ownerOf is the master that serves a key, as the first node that answers sees it.
func (c *cluster) ownerOf(tb testing.TB, key string) *redistest.Server {
	tb.Helper()
	var owner *redistest.Server
	wait.Eventually(tb, patience, func() bool {
		owner = c.owner(key, nil)
		return owner != nil
	}, "nobody serves %s", key)
	return owner
}

// awaitFailover waits until another master than old serves the key, and returns it.
func (c *cluster) awaitFailover(tb testing.TB, key string, old *redistest.Server) *redistest.Server {
	tb.Helper()
	var owner *redistest.Server
	wait.Eventually(tb, patience, func() bool {
		owner = c.owner(key, old)
		return owner != nil && owner != old && owner.Reports("CLUSTER INFO", "cluster_state:ok")
	}, "nobody serves %s but %s", key, old.Addr())
	return owner
}

// owner asks any node but one for the master of a key.
func (c *cluster) owner(key string, but *redistest.Server) *redistest.Server {
	for _, asked := range c.nodes {
		if asked == but || asked.PID() == 0 {
			continue
		}
		answer, err := asked.Call("CLUSTER", "KEYSLOT", key)
		if err != nil {
			continue
		}
		slot, _ := answer.(int64)
		table, err := asked.Call("CLUSTER", "SLOTS")
		if err != nil {
			continue
		}
		return c.find(table, slot)
	}
	return nil
}

// find looks a slot up in the answer to CLUSTER SLOTS.
func (c *cluster) find(table any, slot int64) *redistest.Server {
	ranges, _ := table.([]any)
	for _, r := range ranges {
		entry, _ := r.([]any)
		if len(entry) < 3 {
			continue
		}
		first, _ := entry[0].(int64)
		last, _ := entry[1].(int64)
		master, _ := entry[2].([]any)
		if slot < first || slot > last || len(master) < 2 {
			continue
		}
		for _, node := range c.nodes {
			if master[1] == int64(node.Port()) {
				return node
			}
		}
	}
	return nil
}

// move gives the slot of a key to another master than serves it, with all its keys,
// while clients use them, and returns that one.
func (c *cluster) move(tb testing.TB, key string) *redistest.Server {
	tb.Helper()
	from := c.ownerOf(tb, key)
	to := c.anotherMaster(tb, from)
	slot := fmt.Sprint(from.Do(tb, "CLUSTER", "KEYSLOT", key))
	source, target := fmt.Sprint(from.Do(tb, "CLUSTER", "MYID")), fmt.Sprint(to.Do(tb, "CLUSTER", "MYID"))
	to.Do(tb, "CLUSTER", "SETSLOT", slot, "IMPORTING", source)
	from.Do(tb, "CLUSTER", "SETSLOT", slot, "MIGRATING", target)
	for {
		keys, _ := from.Do(tb, "CLUSTER", "GETKEYSINSLOT", slot, "10").([]any)
		if len(keys) == 0 {
			break
		}
		move := []string{"MIGRATE", "127.0.0.1", strconv.Itoa(to.Port()), "", "0", "5000", "KEYS"}
		for _, key := range keys {
			move = append(move, fmt.Sprint(key))
		}
		from.Do(tb, move...)
	}
	to.Do(tb, "CLUSTER", "SETSLOT", slot, "NODE", target)
	from.Do(tb, "CLUSTER", "SETSLOT", slot, "NODE", target)
	return to
}

func (c *cluster) anotherMaster(tb testing.TB, but *redistest.Server) *redistest.Server {
	tb.Helper()
	for _, node := range c.nodes {
		if node != but && node.Reports("INFO replication", "role:master") {
			return node
		}
	}
	tb.Fatal("there is no other master")
	return nil
}
