package redistest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// client returns a go-redis client that does not retry.
func client(t *testing.T, network, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Network: network, Addr: addr, MaxRetries: -1, DialerRetries: 1,
		DialTimeout: time.Second, ReadTimeout: time.Second,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestStartListensOnSocketAndPort(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	if err := client(t, "tcp", s.Addr()).Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatalf("set over tcp: %v", err)
	}
	got, err := client(t, "unix", s.Socket()).Get(t.Context(), "k").Result()
	if err != nil || got != "v" {
		t.Fatalf("get over the socket = %q, %v", got, err)
	}
	if !strings.HasPrefix(s.Addr(), "127.0.0.1:") {
		t.Errorf("listens on %s, want loopback only", s.Addr())
	}
}

func TestStartKeepsNothingByDefault(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "SET", "k", "v")
	addr := s.Addr()
	s.Restart(t)
	if got := s.Do(t, "GET", "k"); got != nil {
		t.Errorf("key survived a restart: %v", got)
	}
	if s.Addr() != addr {
		t.Errorf("address changed from %s to %s", addr, s.Addr())
	}
}

func TestAppendOnlySurvivesKill(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithAppendOnly())
	s.Do(t, "SET", "k", "v")
	s.Kill(t)
	if s.PID() != 0 {
		t.Errorf("pid %d after a kill", s.PID())
	}
	s.Restart(t)
	if got := s.Do(t, "GET", "k"); got != "v" {
		t.Errorf("after kill and restart k = %v, want v", got)
	}
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := client(t, "unix", s.Socket())
	s.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Ping(ctx).Err(); err == nil {
		t.Error("a paused server answered")
	}
	s.Resume(t)
	wait.Eventually(t, 5*time.Second, func() bool { return c.Ping(t.Context()).Err() == nil }, "a PING after resume")
}

func TestStopsPausedServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Pause(t)
	s.Stop(t)
	s.Stop(t)
	if s.PID() != 0 {
		t.Errorf("pid %d after a stop", s.PID())
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithPassword("secret"), redistest.WithConfig("maxmemory-policy", "allkeys-lru"))
	if err := client(t, "tcp", s.Addr()).Ping(t.Context()).Err(); err == nil {
		t.Error("PING without the password was answered")
	}
	policy, _ := s.Do(t, "CONFIG", "GET", "maxmemory-policy").([]any)
	if len(policy) != 2 || policy[1] != "allkeys-lru" {
		t.Errorf("maxmemory-policy = %v", policy)
	}
	if s.Password() != "secret" {
		t.Errorf("Password() = %q", s.Password())
	}
}

func TestCleanupRemovesServer(t *testing.T) {
	t.Parallel()
	var s *redistest.Server
	t.Run("inner", func(t *testing.T) { s = redistest.Start(t) })
	if _, err := os.Stat(filepath.Dir(s.Socket())); !os.IsNotExist(err) {
		t.Errorf("directory is still there: %v", err)
	}
	if s.PID() != 0 {
		t.Errorf("pid %d after the test ended", s.PID())
	}
}

func TestSharedIsOneServerAndProtected(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	if other := redistest.Shared(t); other != s {
		t.Error("Shared started a second server")
	}
	tb := &recorder{TB: t}
	s.Kill(tb)
	if len(tb.errors) != 1 || !strings.Contains(tb.errors[0], "shared") {
		t.Errorf("killing the shared server reported %q", tb.errors)
	}
	s.Do(t, "PING")
}

func TestNamespaceIsUnique(t *testing.T) {
	t.Parallel()
	if a, b := redistest.Namespace(t), redistest.Namespace(t); a == b || len(a) < 10 {
		t.Errorf("namespaces %q and %q", a, b)
	}
}
