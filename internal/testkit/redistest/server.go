// Package redistest gives tests a Redis of their own.
//
// [Start] runs a private redis-server for one test; [Shared] runs one per test
// binary, on first use, and [Main] stops it at the end. Both listen on a unix
// socket in a temporary directory and on a free loopback port, keep nothing on
// disk unless asked to, and die with the test binary.
//
// Tests that share a server stay apart by [Namespace] and, stricter, by
// [Server.Limited]: a user that may touch the keys of one namespace only, so
// that a stray key or a FLUSHDB fails instead of going unseen.
//
// [Proxy] stands between a client and the server and loses replies, cuts
// connections or hangs, on command.
//
// The package is imported from _test.go files only.
package redistest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
)

const (
	startLimit = 10 * time.Second
	stopLimit  = 5 * time.Second
)

// Server is a private redis-server. Its methods may be called from any
// goroutine; a method that cannot do its work marks the test as failed.
type Server struct {
	dir      string
	settings settings
	shared   bool
	addr     string
	freePort func()

	mu      sync.Mutex
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

// launch starts a server in a fresh directory. Its port stays its own while it is down.
func launch(opts ...Option) (*Server, error) {
	// Not tb.TempDir: a long test name would exceed the 108 bytes of a socket path.
	dir, err := os.MkdirTemp("", "tdf-redis-")
	if err != nil {
		return nil, fmt.Errorf("directory for redis-server: %w", err)
	}
	port, free, err := hosttest.ReservePort()
	if err != nil {
		return nil, fmt.Errorf("port for redis-server: %w", err)
	}
	s := &Server{dir: dir, addr: fmt.Sprintf("127.0.0.1:%d", port), freePort: free}
	for _, opt := range opts {
		opt(&s.settings)
	}
	if err := s.up(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// Addr returns the server's loopback address as host:port. It stays the same
// over [Server.Restart].
func (s *Server) Addr() string { return s.addr }

// Port is the TCP port of [Server.Addr].
func (s *Server) Port() int {
	_, text, _ := net.SplitHostPort(s.addr)
	port, _ := strconv.Atoi(text) // 0 before the server has an address
	return port
}

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
	return s.process.cmd.Process.Pid
}

// close ends the server and removes its directory.
func (s *Server) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.freePort()
	err := s.down(syscall.SIGTERM)
	if rm := os.RemoveAll(s.dir); err == nil && rm != nil {
		err = fmt.Errorf("removing the directory of redis-server: %w", rm)
	}
	return err
}

// sharedServer is the one server of this test binary. A package variable is what
// makes it one: TestMain and the tests have nothing else in common.
var sharedServer struct {
	sync.Mutex
	server *Server
}

// Main runs the tests of a package, stops the shared server and then fails the
// package if a goroutine is left. Use it as the whole body of TestMain:
//
//	func TestMain(m *testing.M) { redistest.Main(m) }
func Main(m *testing.M, opts ...goleak.Option) {
	// A client that was closed while its Redis was down tries to reach it for up to a second.
	opts = append(opts, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
	goleak.VerifyTestMain(stopAfter{m}, opts...)
}

// stopAfter stops the shared server between the tests and the leak check.
type stopAfter struct{ m *testing.M }

// Run runs the tests and returns their exit code.
func (s stopAfter) Run() int {
	logging.Disable() // of what a client says by itself while a server is down
	defer stopShared()
	return s.m.Run()
}

func stopShared() {
	sharedServer.Lock()
	defer sharedServer.Unlock()
	if sharedServer.server != nil {
		_ = sharedServer.server.close()
		sharedServer.server = nil
	}
}

// Shared returns the redis-server of this test binary and starts it on first
// use. It may not be stopped, killed or paused. The package needs a TestMain that
// calls [Main].
func Shared(tb testing.TB) *Server {
	tb.Helper()
	sharedServer.Lock()
	defer sharedServer.Unlock()
	if sharedServer.server == nil {
		s, err := launch()
		if err != nil {
			tb.Fatalf("starting the shared redis-server: %v", err)
		}
		s.shared = true
		sharedServer.server = s
	}
	return sharedServer.server
}

// Stop ends the server with SIGTERM. Clients see their connections closed.
// A server that is down already stays down.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	s.control(tb, "stop", func() error { return s.down(syscall.SIGTERM) })
}

// Kill ends the server with SIGKILL: what was not on disk is lost.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	s.control(tb, "kill", func() error { return s.down(syscall.SIGKILL) })
}

// Restart stops the server if it runs and starts it again at the same addresses.
// Data survives only under [WithAppendOnly].
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.control(tb, "restart", func() error {
		if err := s.down(syscall.SIGTERM); err != nil {
			return err
		}
		return s.up()
	})
}

// Pause freezes the server (SIGSTOP): connections stay open, nothing is answered.
func (s *Server) Pause(tb testing.TB) {
	tb.Helper()
	s.control(tb, "pause", func() error { return s.signal(syscall.SIGSTOP) })
}

// Resume lets a paused server go on (SIGCONT).
func (s *Server) Resume(tb testing.TB) {
	tb.Helper()
	s.control(tb, "resume", func() error { return s.signal(syscall.SIGCONT) })
}

// control runs one operation on a server that belongs to this test alone.
func (s *Server) control(tb testing.TB, verb string, do func() error) {
	tb.Helper()
	if s.shared {
		tb.Errorf("cannot %s the shared redis-server: other tests use it; take redistest.Start", verb)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := do(); err != nil {
		tb.Errorf("cannot %s redis-server: %v", verb, err)
	}
}

func (s *Server) signal(sig syscall.Signal) error {
	if s.process == nil {
		return errDown
	}
	return s.process.signal(sig)
}

// up starts the process and waits until it answers; s.mu is held or s is not
// shared yet.
func (s *Server) up() error {
	p, err := startProcess(s.dir, s.addr, s.Socket(), &s.settings)
	if err != nil {
		return err
	}
	if err := s.awaitPong(p); err != nil {
		_ = p.end(syscall.SIGKILL)
		return fmt.Errorf("%w; its log ends:\n%s", err, logTail(s.dir))
	}
	s.process = p
	return nil
}

// down ends the process, if there is one, beginning with sig.
func (s *Server) down(sig syscall.Signal) error {
	if s.process == nil {
		return nil
	}
	err := s.process.end(sig)
	s.process = nil
	return err
}

// Namespace returns a namespace nobody else uses and logs it, so that a failed
// test names the keys it worked on.
func Namespace(tb testing.TB) string {
	tb.Helper()
	ns := "t" + strings.ToLower(rand.Text()[:12])
	tb.Logf("namespace %s", ns)
	return ns
}

// User is a Redis user that may use the keys and channels of one namespace only.
type User struct {
	// Name and Password are what a client logs in with.
	Name, Password string

	server *Server
}

// Limited creates a user for the keys "ns:*" and "{ns}:*" and the channels
// "ns:*" and "{ns}:*". Commands of the category @dangerous (KEYS, FLUSHDB, CONFIG
// and their like) are refused, except INFO, which the daemons check the server
// with. The rules hold inside scripts too. The user is removed when the test ends.
func (s *Server) Limited(tb testing.TB, ns string) User {
	tb.Helper()
	ns = strings.Trim(ns, "{}")
	u := User{Name: "u-" + ns, Password: rand.Text(), server: s}
	s.Do(tb, "ACL", "SETUSER", u.Name, "reset", "resetchannels", "on", ">"+u.Password,
		"~"+ns+":*", "~{"+ns+"}:*", "&"+ns+":*", "&{"+ns+"}:*",
		"+@all", "-@dangerous", "+info", "-flushdb", "-flushall", "-keys")
	tb.Cleanup(func() { _, _ = s.Call("ACL", "DELUSER", u.Name) })
	return u
}

// EnsureEmptyACLLog fails the test if Redis refused this user anything, also
// when the code under test swallowed the error. Call it at the end of the test.
func (u User) EnsureEmptyACLLog(tb testing.TB) {
	tb.Helper()
	entries, _ := u.server.Do(tb, "ACL", "LOG", "128").([]any)
	for _, entry := range entries {
		if f := fields(entry); f["username"] == u.Name {
			tb.Errorf("redis refused user %s: %s %s in %s", u.Name, f["reason"], f["object"], f["context"])
		}
	}
}

// fields reads a flat list of names and values.
func fields(entry any) map[string]string {
	list, _ := entry.([]any)
	m := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		m[fmt.Sprint(list[i])] = fmt.Sprint(list[i+1])
	}
	return m
}
