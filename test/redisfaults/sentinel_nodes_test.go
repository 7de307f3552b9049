package redisfaults

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// masterName is the name by which the sentinels know the master.
const masterName = "mymaster"

// sentinelGroup is a master with two replicas and three sentinels that watch it. Each
// of them is a [redistest.Server] of its own, to be killed, paused and restarted.
type sentinelGroup struct {
	// nodes are the master and the replicas, guards the sentinels.
	nodes, guards []*redistest.Server
}

// startSentinel starts the six processes and waits until the replicas are in sync
// and the sentinels know one another. The master takes writes only while a replica
// follows within 2 s; the sentinels call it dead after 1 s of silence, two of
// three decide. All servers keep an append-only file, written each second.
func startSentinel(tb testing.TB) *sentinelGroup {
	tb.Helper()
	opts := []redistest.Option{
		redistest.Replicated(), redistest.WithConfig("min-replicas-to-write", "1"), redistest.WithConfig("min-replicas-max-lag", "2"),
	}
	s := &sentinelGroup{nodes: []*redistest.Server{redistest.Start(tb, opts...)}}
	port := strconv.Itoa(s.nodes[0].Port())
	for range 2 {
		s.nodes = append(s.nodes, redistest.Start(tb, append(slices.Clone(opts), redistest.WithConfig("replicaof", "127.0.0.1", port))...))
	}
	for range 3 {
		s.guards = append(s.guards, redistest.Start(tb, redistest.AsSentinel(),
			redistest.WithConfig("sentinel", "monitor", masterName, "127.0.0.1", port, "2"),
			redistest.WithConfig("sentinel", "down-after-milliseconds", masterName, "1000"),
			// How long a try may last; after twice that comes the next.
			redistest.WithConfig("sentinel", "failover-timeout", masterName, "2000")))
	}
	s.awaitSync(tb)
	return s
}

// redis is how a program reaches the master, with the limits that are the defaults
// of the configuration.
func (s *sentinelGroup) redis() config.Redis {
	return config.Redis{
		SentinelMaster: masterName, SentinelAddrs: addrs(s.guards),
		DialTimeout: 5 * time.Second, ReadTimeout: 3 * time.Second, WriteTimeout: 3 * time.Second,
	}
}

// mustMaster asks the sentinels for the master.
func (s *sentinelGroup) mustMaster(tb testing.TB) *redistest.Server {
	tb.Helper()
	master := s.master()
	if master == nil {
		tb.Fatal("no sentinel names a master")
	}
	return master
}

func (s *sentinelGroup) master() *redistest.Server {
	for _, guard := range s.guards {
		answer, _ := guard.Call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName) // none of one that is down
		addr, _ := answer.([]any)
		for _, node := range s.nodes {
			if len(addr) == 2 && addr[1] == strconv.Itoa(node.Port()) {
				return node
			}
		}
	}
	return nil
}

// replicas are the nodes that are not the master.
func (s *sentinelGroup) replicas(tb testing.TB) []*redistest.Server {
	tb.Helper()
	master := s.mustMaster(tb)
	return slices.DeleteFunc(slices.Clone(s.nodes), func(node *redistest.Server) bool { return node == master })
}

// awaitFailover waits until another node than old is the master, and returns it.
func (s *sentinelGroup) awaitFailover(tb testing.TB, old *redistest.Server) *redistest.Server {
	tb.Helper()
	var master *redistest.Server
	wait.Eventually(tb, patience, func() bool {
		master = s.master()
		return master != nil && master != old && master.Reports("INFO replication", "role:master")
	}, "no other master than %s", old.Addr())
	return master
}

// awaitSync waits until both replicas follow the master and all sentinels know of
// all. All six processes must run.
func (s *sentinelGroup) awaitSync(tb testing.TB) {
	tb.Helper()
	wait.Eventually(tb, patience, s.inSync, "the group of %v and %v does not agree", addrs(s.nodes), addrs(s.guards))
}

func (s *sentinelGroup) inSync() bool {
	master := s.master()
	if master == nil || !master.Reports("INFO replication", "role:master", "min_slaves_good_slaves:2") {
		return false
	}
	port := strconv.Itoa(master.Port())
	for _, node := range s.nodes {
		if node != master && !node.Reports("INFO replication", "role:slave", "master_port:"+port,
			"master_link_status:up", "master_sync_in_progress:0") {
			return false
		}
	}
	return !slices.ContainsFunc(s.guards, func(guard *redistest.Server) bool { return !watches(guard, port) })
}

// watches reports whether a sentinel knows the master at that port, its replicas and
// the other sentinels, and thinks that all is well.
func watches(guard *redistest.Server, port string) bool {
	answer, _ := guard.Call("SENTINEL", "MASTER", masterName) // none of one that is down
	list, _ := answer.([]any)
	found := map[any]any{}
	for i := 0; i+1 < len(list); i += 2 {
		found[list[i]] = list[i+1]
	}
	return found["port"] == port && found["flags"] == "master" && found["num-slaves"] == "2" && found["num-other-sentinels"] == "2"
}

// addrs are the addresses of servers.
func addrs(servers []*redistest.Server) []string {
	list := make([]string, len(servers))
	for i, s := range servers {
		list[i] = s.Addr()
	}
	return list
}

// killAll ends servers with SIGKILL, one after the other.
func killAll(tb testing.TB, servers ...*redistest.Server) {
	tb.Helper()
	for _, s := range servers {
		s.Kill(tb)
	}
}

// restartAll starts servers again, one after the other.
func restartAll(tb testing.TB, servers ...*redistest.Server) {
	tb.Helper()
	for _, s := range servers {
		s.Restart(tb)
	}
}
