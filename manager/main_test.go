package manager

import (
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
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
func shortLease() testOption { return withSettings("manager.handling_lease=1") }

// quiet logs nothing.
func quiet() testOption { return withLogger(slog.New(slog.DiscardHandler)) }

// newManager returns a manager on a namespace of the shared server.
func newManager(tb testing.TB, ns string, opts ...testOption) *Manager {
	tb.Helper()
	log := slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	o := testOptions{log: log, where: storetest.Where(redistest.Shared(tb))}
	for _, opt := range opts {
		opt(&o)
	}
	site := storetest.At(tb, o.where, ns, o.log, o.settings...)
	if err := site.Check(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return New(site, "m", o.Options)
}

// testOptions are of the site that a manager is made for.
type testOptions struct {
	log      *slog.Logger
	where    config.Redis
	settings []string
	Options
}

type testOption func(*testOptions)

func withSettings(settings ...string) testOption {
	return func(o *testOptions) { o.settings = append(o.settings, settings...) }
}

func withLogger(log *slog.Logger) testOption { return func(o *testOptions) { o.log = log } }

func withLogin(user, password string) testOption {
	return func(o *testOptions) { o.where.Username, o.where.Password = user, password }
}

func standby(force bool) testOption {
	return func(o *testOptions) { o.Standby, o.Force = true, force }
}

// at puts the site on another Redis.
func at(host, port string) testOption {
	return func(o *testOptions) {
		o.where.Host = host
		o.where.Port, _ = strconv.Atoi(port)
	}
}

// redisOf is the store of a manager, for what servers and workers ask of it.
func redisOf(m *Manager) *store.Store { return m.store.(*store.Store) }

// quick are settings for tests of the loop.
func quick() testOption {
	return withSettings("manager.round_duration=0.05", "manager.handler_backoff=0.02", "manager.handler_backoff_max=0.1")
}

func mustOpen(tb testing.TB, m *Manager, n int, spec task.Spec) []int64 {
	tb.Helper()
	ids, err := idsOpened(m.SubmitAll(tb.Context(), func(yield func(task.Spec) bool) {
		for i := range n {
			s := spec
			if s.Input == "" {
				s.Input = fmt.Sprint(i + 1)
			}
			if !yield(s) {
				return
			}
		}
	}))
	if err != nil {
		tb.Fatal(err)
	}
	return ids
}

func spec() task.Spec { return task.Spec{Program: "p", Source: "s"} }

// idOf and idsOpened are the ids of what [Manager.Submit] and [Manager.SubmitAll] return.
func idOf(opened task.Opened, err error) (int64, error) { return opened.ID, err }

func idsOpened(opened []task.Opened, err error) ([]int64, error) {
	ids := make([]int64, len(opened))
	for i, o := range opened {
		ids[i] = o.ID
	}
	return ids, err
}
