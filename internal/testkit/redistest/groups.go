package redistest

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// MasterName is the name by which the sentinels of [StartSentinel] know the master.
const MasterName = "mymaster"

// Sentinel is a master with two replicas and three sentinels that watch it. Each
// of them is a [Server] of its own, to be killed, paused and restarted.
type Sentinel struct {
	nodes, guards []*Server
}

// StartSentinel starts the six processes and waits until the replicas are in sync
// and the sentinels know one another. The master takes writes only while a replica
// follows within 2 s; the sentinels call it dead after 1 s of silence, two of
// three decide. All servers keep an append-only file, written each second. The
// options are for master and replicas.
func StartSentinel(tb testing.TB, opts ...Option) *Sentinel {
	tb.Helper()
	opts = append([]Option{WithConfig("min-replicas-to-write", "1"), WithConfig("min-replicas-max-lag", "2")}, opts...)
	s := &Sentinel{nodes: []*Server{member(tb, opts...)}}
	port := strconv.Itoa(s.nodes[0].Port())
	for range 2 {
		s.nodes = append(s.nodes, member(tb, append(opts, WithConfig("replicaof", "127.0.0.1", port))...))
	}
	for range 3 {
		s.guards = append(s.guards, Start(tb, func(set *settings) { set.form = asSentinel },
			WithConfig("sentinel", "monitor", MasterName, "127.0.0.1", port, "2"),
			WithConfig("sentinel", "down-after-milliseconds", MasterName, "1000"),
			// How long a try may last; after twice that comes the next.
			WithConfig("sentinel", "failover-timeout", MasterName, "2000")))
	}
	s.AwaitSync(tb)
	return s
}

// Redis is how a program reaches the master.
func (s *Sentinel) Redis() config.Redis {
	return reached(config.Redis{SentinelMaster: MasterName, SentinelAddrs: addrs(s.guards)})
}

// Nodes are the master and the replicas.
func (s *Sentinel) Nodes() []*Server { return slices.Clone(s.nodes) }

// Sentinels are those that watch the nodes.
func (s *Sentinel) Sentinels() []*Server { return slices.Clone(s.guards) }

// Master asks the sentinels for the master.
func (s *Sentinel) Master(tb testing.TB) *Server {
	tb.Helper()
	master := s.master()
	if master == nil {
		tb.Fatal("no sentinel names a master")
	}
	return master
}

func (s *Sentinel) master() *Server {
	for _, guard := range s.guards {
		if guard.PID() == 0 {
			continue
		}
		named := guard.texts("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName)
		for _, node := range s.nodes {
			if len(named) == 2 && named[1] == strconv.Itoa(node.Port()) {
				return node
			}
		}
	}
	return nil
}

// Replicas are the nodes that are not the master.
func (s *Sentinel) Replicas(tb testing.TB) []*Server {
	tb.Helper()
	master := s.Master(tb)
	var replicas []*Server
	for _, node := range s.nodes {
		if node != master {
			replicas = append(replicas, node)
		}
	}
	return replicas
}

// AwaitFailover waits until another node than old is the master, and returns it.
func (s *Sentinel) AwaitFailover(tb testing.TB, old *Server) *Server {
	tb.Helper()
	var master *Server
	wait.Eventually(tb, groupLimit, func() bool {
		master = s.master()
		return master != nil && master != old && has(master.info("INFO", "replication"), "role:master")
	}, "no other master than %s", old.Addr())
	return master
}

// AwaitSync waits until both replicas follow the master and all sentinels know of
// all. All six processes must run.
func (s *Sentinel) AwaitSync(tb testing.TB) {
	tb.Helper()
	wait.Eventually(tb, groupLimit, s.inSync, "the group of %v and %v does not agree", addrs(s.nodes), addrs(s.guards))
}

func (s *Sentinel) inSync() bool {
	master := s.master()
	if master == nil || !has(master.info("INFO", "replication"), "role:master", "min_slaves_good_slaves:2") {
		return false
	}
	for _, node := range s.nodes {
		if node != master && !node.follows(master) {
			return false
		}
	}
	for _, guard := range s.guards {
		if !guard.watches(master) {
			return false
		}
	}
	return true
}

// follows reports whether the server is a replica of the master, and in sync.
func (s *Server) follows(master *Server) bool {
	return has(s.info("INFO", "replication"), "role:slave", "master_port:"+strconv.Itoa(master.Port()),
		"master_link_status:up", "master_sync_in_progress:0")
}

// watches reports whether a sentinel knows the master, its replicas and the other
// sentinels, and thinks that all is well.
func (s *Server) watches(master *Server) bool {
	found, list := map[string]string{}, s.texts("SENTINEL", "MASTER", MasterName)
	for i := 0; i+1 < len(list); i += 2 {
		found[list[i]] = list[i+1]
	}
	return has(found, "port:"+strconv.Itoa(master.Port()), "flags:master", "num-slaves:2", "num-other-sentinels:2")
}

const (
	clusterMasters = 3
	clusterSlots   = 16384
)

// Cluster is a Redis Cluster of three masters with a replica each. Each process is
// a [Server] of its own, to be killed, paused and restarted.
type Cluster struct {
	// nodes are the first masters, then their first replicas in the same order.
	nodes []*Server
	ids   []string
}

// StartCluster starts the six processes, makes a cluster of them and waits until
// all replicas are in sync. A node counts as dead after 2 s of silence. All keep an
// append-only file, written each second.
func StartCluster(tb testing.TB, opts ...Option) *Cluster {
	tb.Helper()
	c := &Cluster{}
	for i := range 2 * clusterMasters {
		bus, err := freeAddr()
		if err != nil {
			tb.Fatal(err)
		}
		node := member(tb, append([]Option{
			WithConfig("cluster-enabled", "yes"), WithConfig("cluster-node-timeout", "2000"),
			WithConfig("cluster-replica-validity-factor", "0"),
			WithConfig("cluster-port", bus[strings.LastIndexByte(bus, ':')+1:]),
		}, opts...)...)
		c.nodes = append(c.nodes, node)
		c.ids = append(c.ids, fmt.Sprint(node.Do(tb, "CLUSTER", "MYID")))
		node.Do(tb, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		c.nodes[0].meet(tb, node)
	}
	c.join(tb)
	return c
}

// meet introduces a server to another one.
func (s *Server) meet(tb testing.TB, other *Server) {
	tb.Helper()
	if s == other {
		return
	}
	bus, _ := other.Do(tb, "CONFIG", "GET", "cluster-port").([]any)
	s.Do(tb, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(other.Port()), fmt.Sprint(bus[1]))
}

// join gives each master its slots and its replica.
func (c *Cluster) join(tb testing.TB) {
	tb.Helper()
	for i, node := range c.nodes[:clusterMasters] {
		first, next := i*clusterSlots/clusterMasters, (i+1)*clusterSlots/clusterMasters
		node.Do(tb, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(next-1))
	}
	wait.Eventually(tb, groupLimit, func() bool { return c.all("cluster_known_nodes:6") }, "the nodes do not meet")
	for i, node := range c.nodes[clusterMasters:] {
		wait.Eventually(tb, groupLimit, func() bool {
			_, err := node.call("CLUSTER", "REPLICATE", c.ids[i])
			return err == nil
		}, "node %s cannot follow", node.Addr())
	}
	c.AwaitSync(tb)
}

// Redis is how a program reaches the cluster; its namespace must be in braces.
func (c *Cluster) Redis() config.Redis {
	return reached(config.Redis{ClusterAddrs: addrs(c.nodes)})
}

// Nodes are all six servers.
func (c *Cluster) Nodes() []*Server { return slices.Clone(c.nodes) }

func (c *Cluster) all(lines ...string) bool {
	for _, node := range c.nodes {
		if !has(node.info("CLUSTER", "INFO"), lines...) {
			return false
		}
	}
	return true
}

// AwaitSync waits until all slots are served, and each of three masters is
// followed by a replica. All six processes must run.
func (c *Cluster) AwaitSync(tb testing.TB) {
	tb.Helper()
	wait.Eventually(tb, groupLimit, func() bool {
		masters, followed := 0, 0
		for _, node := range c.nodes {
			found := node.info("INFO", "replication")
			switch {
			case has(found, "role:master", "connected_slaves:1"):
				masters++
			case has(found, "role:slave", "master_link_status:up", "master_sync_in_progress:0"):
				followed++
			}
		}
		return masters == clusterMasters && followed == clusterMasters && c.all("cluster_state:ok")
	}, "the cluster of %v does not agree", addrs(c.nodes))
}

// Owner is the master that serves a key, as the first node that answers sees it.
func (c *Cluster) Owner(tb testing.TB, key string) *Server {
	tb.Helper()
	var owner *Server
	wait.Eventually(tb, groupLimit, func() bool {
		owner = c.owner(key, nil)
		return owner != nil
	}, "nobody serves %s", key)
	return owner
}

// AwaitFailover waits until another master than old serves the key, and returns it.
func (c *Cluster) AwaitFailover(tb testing.TB, key string, old *Server) *Server {
	tb.Helper()
	var owner *Server
	wait.Eventually(tb, groupLimit, func() bool {
		owner = c.owner(key, old)
		return owner != nil && owner != old && has(owner.info("CLUSTER", "INFO"), "cluster_state:ok")
	}, "nobody serves %s but %s", key, old.Addr())
	return owner
}

// owner asks any node but one for the master of a key.
func (c *Cluster) owner(key string, but *Server) *Server {
	for _, asked := range c.nodes {
		if asked == but || asked.PID() == 0 {
			continue
		}
		answer, err := asked.call("CLUSTER", "KEYSLOT", key)
		if err != nil {
			continue
		}
		slot, _ := answer.(int64)
		table, err := asked.call("CLUSTER", "SLOTS")
		if err != nil {
			continue
		}
		return c.find(table, slot)
	}
	return nil
}

// find looks a slot up in the answer to CLUSTER SLOTS.
func (c *Cluster) find(table any, slot int64) *Server {
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

// Move gives the slot of a key to another master than serves it, with all its keys,
// while clients use them, and returns that one.
func (c *Cluster) Move(tb testing.TB, key string) *Server {
	tb.Helper()
	from := c.Owner(tb, key)
	to := c.anotherMaster(tb, from)
	slot := fmt.Sprint(from.Do(tb, "CLUSTER", "KEYSLOT", key))
	source, target := fmt.Sprint(from.Do(tb, "CLUSTER", "MYID")), fmt.Sprint(to.Do(tb, "CLUSTER", "MYID"))
	to.Do(tb, "CLUSTER", "SETSLOT", slot, "IMPORTING", source)
	from.Do(tb, "CLUSTER", "SETSLOT", slot, "MIGRATING", target)
	for {
		keys := from.texts("CLUSTER", "GETKEYSINSLOT", slot, "10")
		if len(keys) == 0 {
			break
		}
		from.Do(tb, append([]string{"MIGRATE", "127.0.0.1", strconv.Itoa(to.Port()), "", "0", "5000", "KEYS"}, keys...)...)
	}
	to.Do(tb, "CLUSTER", "SETSLOT", slot, "NODE", target)
	from.Do(tb, "CLUSTER", "SETSLOT", slot, "NODE", target)
	return to
}

func (c *Cluster) anotherMaster(tb testing.TB, but *Server) *Server {
	tb.Helper()
	for _, node := range c.nodes {
		if node != but && has(node.info("INFO", "replication"), "role:master") {
			return node
		}
	}
	tb.Fatal("there is no other master")
	return nil
}

// groupLimit bounds the wait for a group of servers to agree.
const groupLimit = 30 * time.Second

// reached completes how a program reaches a group, with the limits that are the
// defaults of the configuration.
func reached(where config.Redis) config.Redis {
	where.DialTimeout, where.ReadTimeout, where.WriteTimeout = 5*time.Second, 3*time.Second, 3*time.Second
	return where
}

func addrs(servers []*Server) []string {
	list := make([]string, len(servers))
	for i, s := range servers {
		list[i] = s.Addr()
	}
	return list
}

// Port is the TCP port of [Server.Addr].
func (s *Server) Port() int {
	_, text, _ := net.SplitHostPort(s.addr)
	port, _ := strconv.Atoi(text) // 0 before the server has an address
	return port
}

// member starts a server that keeps everything, is given its directives in a file,
// and belongs to a group.
func member(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	all := slices.Concat([]Option{
		func(s *settings) { s.form = inFile },
		WithConfig("appendonly", "yes"), WithConfig("appendfsync", "everysec"),
		// By the disk: else a replica that is in sync gets no commands for a second.
		WithConfig("repl-diskless-sync", "no"), WithConfig("repl-diskless-sync-delay", "0"),
	}, opts)
	return Start(tb, all...)
}

// KillAll ends servers with SIGKILL, one after the other.
func KillAll(tb testing.TB, servers ...*Server) {
	tb.Helper()
	for _, s := range servers {
		s.Kill(tb)
	}
}

// RestartAll starts servers again, one after the other.
func RestartAll(tb testing.TB, servers ...*Server) {
	tb.Helper()
	for _, s := range servers {
		s.Restart(tb)
	}
}
