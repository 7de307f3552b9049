package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	startLimit = 10 * time.Second
	stopLimit  = 5 * time.Second
	portTries  = 5
)

// Server is a private redis-server. Its methods may be called from any
// goroutine; a method that cannot do its work marks the test as failed.
type Server struct {
	dir      string
	settings settings
	shared   bool

	mu      sync.Mutex
	addr    string
	process *process // nil while the server is down
}

// Start runs a redis-server for this test alone and stops it when the test ends.
// It ends the test at once when redis-server is missing or does not answer a
// PING within 10 s.
func Start(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	s, err := launch(opts...)
	if err != nil {
		tb.Fatalf("starting redis-server: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.close(); err != nil {
			tb.Errorf("stopping redis-server: %v", err)
		}
	})
	return s
}

// launch starts a server in a fresh directory. Its port is free when it is
// chosen, but another process may take it first, so a failed start is repeated
// on another port.
func launch(opts ...Option) (*Server, error) {
	// Not tb.TempDir: a long test name would exceed the 108 bytes of a socket path.
	dir, err := os.MkdirTemp("", "tdf-redis-")
	if err != nil {
		return nil, fmt.Errorf("directory for redis-server: %w", err)
	}
	s := &Server{dir: dir}
	for _, opt := range opts {
		opt(&s.settings)
	}
	for range portTries {
		if s.addr, err = freeAddr(); err != nil {
			break
		}
		if err = s.up(); err == nil {
			return s, nil
		}
		_ = os.Remove(s.settings.file(dir)) // it names the port
	}
	_ = os.RemoveAll(dir)
	return nil, err
}

// freeAddr returns a loopback address whose port nobody listens on.
func freeAddr() (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

// Addr returns the server's loopback address as host:port. It stays the same
// over [Server.Restart].
func (s *Server) Addr() string { return s.addr }

// Socket returns the path of the server's unix socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, "redis.sock") }

// Password returns the default user's password, empty when there is none.
func (s *Server) Password() string { return s.settings.password }

// PID returns the process id, or 0 while the server is down.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.pid()
}

// close ends the server for good and removes its directory.
func (s *Server) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.down(syscall.SIGTERM)
	if rm := os.RemoveAll(s.dir); err == nil && rm != nil {
		err = fmt.Errorf("removing the directory of redis-server: %w", rm)
	}
	return err
}
