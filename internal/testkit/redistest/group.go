package redistest

import (
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
)

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
