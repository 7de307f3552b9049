package manager

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/task"
)

// TestMain also makes the test binary a manager; see childManager.
func TestMain(m *testing.M) {
	if args := os.Getenv(childEnv); args != "" {
		runChild(strings.Fields(args)...)
		return
	}
	redistest.Main(m)
}

// shortLease is for tests that wait for its end.
func shortLease() Option { return WithSettings("manager.handling_lease=1") }

// quiet logs nothing.
func quiet() Option { return WithLogger(slog.New(slog.DiscardHandler)) }

// newManager returns a manager on a namespace of the shared server.
func newManager(tb testing.TB, ns string, opts ...Option) *Manager {
	tb.Helper()
	log := slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	all := append([]Option{WithLogger(log), WithSettings(settings(redistest.Shared(tb).Socket(), ns)...)}, opts...)
	m, err := New(tb.Context(), "m", "", all...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = m.Close() })
	return m
}

// redisOf is the store of a manager, for what servers and workers ask of it.
func redisOf(m *Manager) *store.Store { return m.store.(*store.Store) }

func settings(host, ns string) []string {
	return []string{"redis.host=" + host, "tdf.namespace=" + ns}
}

// quick are settings for tests of the loop.
func quick() Option {
	return WithSettings("manager.round_duration=0.05", "manager.handler_backoff=0.02", "manager.handler_backoff_max=0.1")
}

func mustOpen(tb testing.TB, m *Manager, n int, spec task.Spec) []int64 {
	tb.Helper()
	ids, err := m.OpenAll(tb.Context(), func(yield func(task.Spec) bool) {
		for i := range n {
			s := spec
			if s.Input == "" {
				s.Input = fmt.Sprint(i + 1)
			}
			if !yield(s) {
				return
			}
		}
	})
	if err != nil {
		tb.Fatal(err)
	}
	return ids
}

func spec() task.Spec { return task.Spec{Program: "p", Source: "s"} }
