package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// The race: 16 workers, four on each of four nodes, and 10,000 tasks in queues
// with all kinds of limits.
const (
	racers   = 16
	raceSize = 10_000
	// racePoll is how long a worker waits for a wake-up at most.
	racePoll = 3 * time.Second
)

// raceCaps are the most rounds on each node, over all queues.
var raceCaps = map[string]task.Limit{"n0": task.AtMost(6), "n1": task.AtMost(5), "n2": task.Unlimited, "n3": task.AtMost(3)}

// raceGPUs is how many each node has.
const raceGPUs = 3

// raceQueues are the queues of the race; tasks of the queue gpu ask one or two of them.
func raceQueues() map[string]task.QueueSpec {
	fleet, node, gpu, free := task.ParseQueue("fleet", nil), task.ParseQueue("node", nil), task.ParseQueue("gpu", nil), task.ParseQueue("free", nil)
	fleet.Threads, node.MaxThreads = task.AtMost(5), task.AtMost(2)
	return map[string]task.QueueSpec{"fleet": fleet, "node": node, "gpu": gpu, "free": free}
}

// limitRace is a race under way.
type limitRace struct {
	t     *testing.T
	sp    *storetest.Space
	rules fleet.Rules
	left  atomic.Int64
	done  context.CancelFunc

	mu    sync.Mutex
	waits []wait // who waited for work, and when
}

// wait is a time in which a worker of a node had free slots and nothing to do.
type wait struct {
	node       string
	begin, end statemachine.Time
}

// TestLongLimitsUnderRace: no moment shows a limit exceeded, and no task waits long for
// a free place that a worker has waited to fill.
func TestLongLimitsUnderRace(t *testing.T) {
	t.Parallel()
	r := &limitRace{t: t, sp: storetest.New(t)}
	for _, q := range raceQueues() {
		r.sp.AddQueue(t, q)
	}
	r.open(raceSize / 2)
	var err error
	if r.rules, err = r.sp.Store.Rules(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	r.left.Store(raceSize)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.done = cancel
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() { r.work(ctx, i) })
	}
	r.open(raceSize / 2)
	wg.Wait()
	if left := r.left.Load(); left != 0 {
		t.Fatalf("%d tasks are left", left)
	}
	longest := r.replay()
	t.Logf("the longest wait for a free place: %v; workers had to wait %d times", longest, len(r.waits))
	if longest > racePoll {
		t.Errorf("a task waited %v for a place that was free", longest)
	}
}

// open opens n tasks of random buckets, 500 at a time.
func (r *limitRace) open(n int) {
	buckets := []task.Bucket{
		{Queue: "fleet"}, {Queue: "fleet", Priority: 1}, {Queue: "node"}, {Queue: "free"}, {Queue: "free", Priority: -5},
		{Queue: "gpu", Resources: "gpu=1"}, {Queue: "gpu", Resources: "gpu=2"},
	}
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	for range n / 500 {
		specs := make([]task.Definition, 500)
		for i := range specs {
			specs[i] = storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, buckets[rng.IntN(len(buckets))]) })
		}
		r.sp.Open(r.t, specs...)
	}
}

// work claims, holds up to three tasks at a time, and reports them.
func (r *limitRace) work(ctx context.Context, i int) {
	st, name, node := r.sp.Dial(r.t), fmt.Sprint("w", i), fmt.Sprint("n", i%len(raceCaps))
	gpus := task.Resources{"gpu": raceGPUs}
	req := tasks.ClaimRequest{
		Worker: name, Node: node, MaxThreads: raceCaps[node], Resources: gpus, First: i, Rules: r.rules.Version,
		Candidates: task.Candidates(r.rules.Buckets, r.rules.Queues, task.Offer{Worker: name, Node: node, Resources: gpus}),
	}
	var held []tasks.Claimed
	for ctx.Err() == nil {
		req.Request, req.Max, req.First = conn.NewToken(), 3-len(held), req.First+1
		reply, err := st.Claim(ctx, req)
		if err != nil {
			r.failed(ctx, err)
			return
		}
		held = append(held, reply.Tasks...)
		switch {
		case len(held) == 3 || len(held) > 0 && len(reply.Tasks) == 0:
			held = r.report(ctx, st, held)
		case len(held) == 0:
			r.wait(ctx, st, &req, &reply)
		}
	}
}

func (r *limitRace) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		r.t.Error(err)
		r.done()
	}
}

// report ends the older half of the rounds.
func (r *limitRace) report(ctx context.Context, st *store.Store, held []tasks.Claimed) []tasks.Claimed {
	n := (len(held) + 1) / 2
	commits := make([]tasks.Commit, n)
	for i := range commits {
		m, err := statemachine.Decide(&held[i].Task, statemachine.Occurrence{
			Event: statemachine.Report, Actor: statemachine.Worker, Claim: held[i].Task.Current.Claim,
		}, 0)
		if err != nil {
			r.failed(ctx, err)
			return nil
		}
		commits[i] = tasks.Commit{Move: m, Writer: "w"}
	}
	out, err := st.Apply(ctx, commits...)
	if err != nil {
		r.failed(ctx, err)
		return nil
	}
	for _, o := range out {
		if o.Err != nil {
			r.failed(ctx, o.Err)
		}
	}
	if r.left.Add(int64(-n)) == 0 {
		r.done()
	}
	return held[n:]
}

// wait waits as an idle worker does, and remembers when.
func (r *limitRace) wait(ctx context.Context, st *store.Store, req *tasks.ClaimRequest, reply *tasks.ClaimReply) {
	if reply.More {
		return
	}
	begin := statemachine.Time(time.Now().UnixMicro())
	_, err := storetest.Wait(ctx, st, tasks.WaitFor{
		Worker: req.Worker, Node: req.Node, Candidates: req.Candidates, Full: reply.Full, Elsewhere: reply.Elsewhere, NodeFull: reply.NodeFull,
	}, racePoll)
	if err != nil {
		r.failed(ctx, err)
		return
	}
	end := statemachine.Time(time.Now().UnixMicro())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waits = append(r.waits, wait{node: req.Node, begin: begin, end: end})
}
