package verbs

import (
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/task"
)

// fake is a worker that registers and says what the test wants it to say.
type fake struct {
	t       *testing.T
	store   *store.Store
	session fleet.Session
	held    *tasks.Claimed // by the last claim
}

func (b *bench) worker(name string) *fake {
	b.t.Helper()
	r, err := b.store.Register(b.t.Context(), task.Registration{
		Name: name, Node: "node-1", Host: "host.example", PID: 42, Identity: "start of " + name + conn.NewToken(),
		Version: "v1.2.3", Containment: "pidns", Slots: 8, Labels: []string{"gpu=1", "disk=ssd"},
		Env: "python", Resources: map[string]int{"gpu": 2, "mem": 64}, Classes: []string{"render=2.1", "index"}, MaxThreads: task.Unlimited,
	})
	if err != nil || len(r.Former) > 0 {
		b.t.Fatalf("registered %+v, %v", r, err)
	}
	return &fake{t: b.t, store: b.store, session: r.Session}
}

// beat renews the lease and returns what was ordered.
func (f *fake) beat(state task.WorkerState, busy, stuck int, reason string) task.WorkerCommand {
	f.t.Helper()
	r, err := f.store.Renew(f.t.Context(), f.session, fleet.Heartbeat{
		State: state, Reason: reason, Busy: busy, Stuck: stuck,
		Queues: []task.QueueUse{{Class: "*", Queue: "default", Threads: 8, Idle: 8 - busy - stuck, Processing: busy + stuck}},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return r.Order
}

// hears waits until the worker is ordered something.
func (f *fake) hears(order task.WorkerCommand) {
	f.t.Helper()
	wait.Eventually(f.t, limit, func() bool { return f.beat(task.WorkerReady, 1, 0, "") == order }, "no order %q", order)
}

func (f *fake) leave() {
	f.t.Helper()
	if err := f.store.Leave(f.t.Context(), f.session); err != nil {
		f.t.Fatal(err)
	}
}

// claim takes the one task that is due under the worker's session.
func (f *fake) claim() *tasks.Claimed {
	f.t.Helper()
	c, err := f.store.Claim(f.t.Context(), tasks.ClaimRequest{
		Worker: f.session.Name, Request: conn.NewToken(), Candidates: storetest.Free(task.Bucket{}), Max: 1,
		Incarnation: f.session.Incarnation, Node: "node-1", MaxThreads: task.Unlimited,
	})
	if err != nil || len(c.Tasks) != 1 {
		f.t.Fatalf("claim: %v, %v", c, err)
	}
	f.held = &c.Tasks[0]
	return f.held
}
