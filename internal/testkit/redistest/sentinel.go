package redistest

import (
	"slices"
	"strconv"
	"testing"

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
