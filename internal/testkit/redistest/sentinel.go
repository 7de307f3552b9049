package redistest

import (
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// masterName is the name by which the sentinels know the master.
const masterName = "mymaster"

// groupLimit bounds the wait for the group to agree.
const groupLimit = 30 * time.Second

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
	opts = append([]Option{Replicated(), WithConfig("min-replicas-to-write", "1"), WithConfig("min-replicas-max-lag", "2")}, opts...)
	s := &Sentinel{nodes: []*Server{Start(tb, opts...)}}
	port := strconv.Itoa(s.nodes[0].Port())
	for range 2 {
		s.nodes = append(s.nodes, Start(tb, append(slices.Clip(opts), WithConfig("replicaof", "127.0.0.1", port))...))
	}
	for range 3 {
		s.guards = append(s.guards, Start(tb, func(set *settings) { set.sentinel = true },
			WithConfig("sentinel", "monitor", masterName, "127.0.0.1", port, "2"),
			WithConfig("sentinel", "down-after-milliseconds", masterName, "1000"),
			// How long a try may last; after twice that comes the next.
			WithConfig("sentinel", "failover-timeout", masterName, "2000")))
	}
	s.AwaitSync(tb)
	return s
}

// Redis is how a program reaches the master, with the limits that are the defaults
// of the configuration.
func (s *Sentinel) Redis() config.Redis {
	return config.Redis{
		SentinelMaster: masterName, SentinelAddrs: Addrs(s.guards),
		DialTimeout: 5 * time.Second, ReadTimeout: 3 * time.Second, WriteTimeout: 3 * time.Second,
	}
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

// Replicas are the nodes that are not the master.
func (s *Sentinel) Replicas(tb testing.TB) []*Server {
	tb.Helper()
	master := s.Master(tb)
	return slices.DeleteFunc(s.Nodes(), func(node *Server) bool { return node == master })
}

// AwaitFailover waits until another node than old is the master, and returns it.
func (s *Sentinel) AwaitFailover(tb testing.TB, old *Server) *Server {
	tb.Helper()
	var master *Server
	wait.Eventually(tb, groupLimit, func() bool {
		master = s.master()
		return master != nil && master != old && master.Reports("INFO replication", "role:master")
	}, "no other master than %s", old.Addr())
	return master
}

// AwaitSync waits until both replicas follow the master and all sentinels know of
// all. All six processes must run.
func (s *Sentinel) AwaitSync(tb testing.TB) {
	tb.Helper()
	wait.Eventually(tb, groupLimit, s.inSync, "the group of %v and %v does not agree", Addrs(s.nodes), Addrs(s.guards))
}

func (s *Sentinel) inSync() bool {
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
	return !slices.ContainsFunc(s.guards, func(guard *Server) bool { return !guard.watches(port) })
}

// watches reports whether a sentinel knows the master at that port, its replicas and
// the other sentinels, and thinks that all is well.
func (s *Server) watches(port string) bool {
	answer, _ := s.Call("SENTINEL", "MASTER", masterName) // none of one that is down
	found := fields(answer)
	return found["port"] == port && found["flags"] == "master" && found["num-slaves"] == "2" && found["num-other-sentinels"] == "2"
}

// Addrs are the addresses of servers.
func Addrs(servers []*Server) []string {
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
