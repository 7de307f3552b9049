package redisfaults

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/worker"
)

// team is a server, a manager and workers on one Redis.
type team struct {
	where     config.Redis
	namespace string
	// store looks, and manager opens: the one that archives is another.
	store   *store.Store
	manager *manager.Manager
	log     *logs
	ledger  *ledger
}

// workers are their names; each offers the label worker=name.
var workers = []string{"w1", "w2", "w3"}

// newTeam starts a team that works until the test ends, and waits until all of it does.
func newTeam(t *testing.T, where config.Redis, change ...func(*server.Options)) *team {
	t.Helper()
	return newTeamIn(t, where, redistest.Namespace(t), change...)
}

func newTeamIn(t *testing.T, where config.Redis, namespace string, change ...func(*server.Options)) *team {
	t.Helper()
	tm := &team{where: where, namespace: namespace, log: &logs{}, ledger: newLedger()}
	tm.store, tm.manager = tm.dial(t), tm.newManager(t, "opener")
	run := map[string]func(context.Context) error{"server": tm.newServer(t, change...).Run}
	archiver := tm.newManager(t, "archiver")
	run["archiver"] = func(ctx context.Context) error {
		return archiver.Run(ctx, manager.Handlers{Unhandled: manager.Archive})
	}
	for _, name := range workers {
		run[name] = tm.newWorker(t, name).Run
	}
	tm.background(t, run)
	tm.awaitWork(t)
	return tm
}

func (tm *team) dial(t *testing.T, opts ...conn.Option) *store.Store {
	t.Helper()
	st, err := store.Dial(tm.where, tm.namespace, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// site is where everybody of the team works.
func (tm *team) site(t *testing.T) *tdf.Site {
	t.Helper()
	return storetest.At(t, tm.where, tm.namespace, tm.logger())
}

func (tm *team) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(tm.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (tm *team) newServer(t *testing.T, change ...func(*server.Options)) *server.Server {
	t.Helper()
	o := server.Options{Settings: server.Settings{RepairInterval: time.Second}}
	for _, f := range change {
		f(&o)
	}
	s, err := server.New(tm.site(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (tm *team) newManager(t *testing.T, name string) *manager.Manager {
	t.Helper()
	return manager.New(tm.site(t), name, manager.Options{})
}

func (tm *team) newWorker(t *testing.T, name string) *worker.Worker {
	t.Helper()
	w, err := worker.New(tm.site(t), worker.Options{Name: name, Handlers: map[string]worker.Handler{"job": tm.ledger.work}, Settings: worker.Settings{
		Node: "node-" + name, Labels: []string{"worker=" + name}, Slots: 4,
		TempDir: t.TempDir(), SpoolDir: t.TempDir(), DiskReserve: -1, KillGrace: time.Second, DrainTimeout: time.Second,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// background runs the daemons until the test ends. One that ends by itself, or
// with an error, fails the test.
func (tm *team) background(t *testing.T, run map[string]func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	for name, run := range run {
		all.Go(func() {
			if err := run(ctx); err != nil || ctx.Err() == nil {
				t.Errorf("%s has ended: %v", name, err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		done := make(chan struct{})
		go func() { defer close(done); all.Wait() }()
		wait.Closed(t, patience, done, "the team does not stop")
		if t.Failed() {
			t.Logf("the team wrote:\n%s", tm.log)
		}
	})
}

// logs gathers what all of the team write.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

var _ io.Writer = (*logs)(nil)

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
