package server

import (
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// lease is the lease of these tests, leased sets it.
const lease = time.Second

func leased(o *options) { o.WorkerTimeout, o.RepairInterval = lease, 200*time.Millisecond }

// registrant is a worker as Redis sees it.
type registrant struct {
	store   *store.Store
	session fleet.Session
	tasks   []tasks.Claimed
}

func registration(name, identity string) task.Registration {
	return task.Registration{Name: name, Node: "node-a", Host: "host-a", PID: 7, Identity: identity, Slots: 1024}
}

// register makes a worker known that claims up to n tasks and then says nothing.
func register(t *testing.T, st *store.Store, name string, n int) *registrant {
	t.Helper()
	if err := st.PublishLease(t.Context(), timing.FromStd(lease)); err != nil {
		t.Fatal(err)
	}
	reg, err := st.Register(t.Context(), registration(name, conn.NewToken()))
	if err != nil || len(reg.Former) > 0 {
		t.Fatalf("register %s: %v, former %v", name, err, reg.Former)
	}
	r := &registrant{store: st, session: reg.Session}
	r.claim(t, n)
	return r
}

func (r *registrant) claim(t *testing.T, n int) {
	t.Helper()
	if n == 0 {
		return
	}
	got, err := r.store.Claim(t.Context(), tasks.ClaimRequest{
		Worker: r.session.Name, Incarnation: r.session.Incarnation, Request: conn.NewToken(),
		Candidates: storetest.Free(task.Bucket{}), Max: n, MaxThreads: task.Unlimited,
	})
	if err != nil || len(got.Tasks) != n {
		t.Fatalf("worker %s claimed %d tasks of %d: %v", r.session.Name, len(got.Tasks), n, err)
	}
	r.tasks = append(r.tasks, got.Tasks...)
}

// renew sends a heartbeat, which must be accepted.
func (r *registrant) renew(t *testing.T) {
	t.Helper()
	if _, err := r.store.Renew(t.Context(), r.session, fleet.Heartbeat{State: task.WorkerReady}); err != nil {
		t.Fatalf("worker %s could not renew its lease: %v", r.session.Name, err)
	}
}

// awaitSteady waits until the server judges workers.
func awaitSteady(t *testing.T, s *Server) {
	t.Helper()
	wait.Eventually(t, 10*time.Second, func() bool { return s.guard.wait() == 0 }, "no verdict on workers is ever allowed")
}

// patient lets the server's own clock go on by at most a tenth of a lease between two
// calls of tick. Who renews its lease before each is never lost, however long the test
// itself is held up.
func patient(s *Server) (tick func()) {
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	var mu sync.Mutex
	shown := time.Now()
	ticked := shown
	now := func() time.Time { return shown.Add(min(time.Since(ticked), lease/10)) }
	s.guard.now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now()
	}
	return func() {
		mu.Lock()
		defer mu.Unlock()
		shown, ticked = now(), time.Now()
	}
}

// steadied makes a server that does not run judge workers now. Its own clock
// stands still, as the one of Redis does in these tests.
func steadied(t *testing.T, s *Server) {
	t.Helper()
	now := time.Now()
	s.guard.now = func() time.Time { return now }
	pass(t, s)
	b, err := s.store.Due(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	s.guard.seen = []reading{{own: now.Add(-s.guard.lease), redis: b.Now}}
}

func openMany(t *testing.T, sp *storetest.Space, n int, change ...func(*task.Definition)) []int64 {
	t.Helper()
	var ids []int64
	for n > 0 {
		specs := make([]task.Definition, min(n, tasks.MaxOpen))
		for i := range specs {
			specs[i] = storetest.Spec(change...)
		}
		ids = append(ids, sp.Open(t, specs...)...)
		n -= len(specs)
	}
	return ids
}

func redisNow(t *testing.T, st *store.Store) statemachine.Time {
	t.Helper()
	now, err := st.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// opened is when the task's round was opened, by the clock of Redis.
func opened(t *testing.T, sp *storetest.Space, id int64, round int) statemachine.Time {
	t.Helper()
	return storetest.Stamps(sp.Task(t, id), round)["open"]
}
