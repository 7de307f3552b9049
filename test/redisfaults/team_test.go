package redisfaults

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
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
	run["archiver"] = func(ctx context.Context) error { return archiver.Run(ctx, manager.Handlers{}) }
	for _, name := range workers {
		run[name] = tm.newWorker(t, name).Run
	}
	tm.background(t, run)
	tm.awaitWork(t, patience)
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

func (tm *team) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(tm.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (tm *team) newServer(t *testing.T, change ...func(*server.Options)) *server.Server {
	t.Helper()
	o := server.FromConfig(config.Defaults().Server)
	o.Name, o.Store, o.Log, o.RepairInterval = "server", tm.dial(t, conn.WithRetries(-1)), tm.logger(), time.Second
	for _, f := range change {
		f(&o)
	}
	s, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (tm *team) newManager(t *testing.T, name string) *manager.Manager {
	t.Helper()
	m, err := manager.New(t.Context(), name, "", manager.WithSettings(tm.settings()...),
		manager.WithLogger(tm.logger()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// settings are what a configuration file would say.
func (tm *team) settings() []string {
	w := &tm.where
	list := []string{"tdf.namespace=" + tm.namespace, "redis.host=" + w.Host, "redis.port=" + strconv.Itoa(cmp.Or(w.Port, 6379)), "redis.durability=" + cmp.Or(w.Durability, config.DurabilityFast)}
	switch {
	case w.Sentinel():
		list[1] = "redis.sentinel_master=" + w.SentinelMaster
		list = append(list, "redis.sentinel_addrs="+strings.Join(w.SentinelAddrs, ","))
	case w.Cluster():
		list[1] = "redis.cluster_addrs=" + strings.Join(w.ClusterAddrs, ",")
	}
	return list
}

func (tm *team) newWorker(t *testing.T, name string) *worker.Worker {
	t.Helper()
	o := worker.DefaultOptions()
	o.Name, o.Node, o.Labels, o.Slots = name, "node-"+name, []string{"worker=" + name}, 4
	o.Backend, o.Log = tm.dial(t), tm.logger()
	o.TempDir, o.SpoolDir, o.DiskReserve = t.TempDir(), t.TempDir(), 0
	o.KillGrace, o.DrainTimeout = time.Second, time.Second
	o.Handlers = map[string]worker.Handler{"job": tm.ledger.work}
	w, err := worker.New(o)
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
