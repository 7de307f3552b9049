package store_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// inEnv is a task of queue q with an env.
func inEnv(env string) task.Definition {
	return storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, task.Bucket{Queue: "q", Env: env}) })
}

// TestPlaceReachesWhoNeedsIt: a place in the fleet wakes the worker that was turned
// away, not an idle one that has nothing to do with it, however long it waits.
func TestPlaceReachesWhoNeedsIt(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	q := task.ParseQueue("q", nil)
	q.Threads = task.AtMost(1)
	sp.AddQueue(t, q)
	sp.Open(t, inEnv("a"), inEnv("b"))
	busy, idle, turned := newIdler(t, sp, "wa", "n"), newIdler(t, sp, "wa2", "m"), newIdler(t, sp, "wb", "o")
	busy.env, idle.env, turned.env = "a", "a", "b"
	task := busy.claim()
	idle.settleDown()
	turned.settleDown()
	if len(idle.last.Full) != 0 || len(turned.last.Elsewhere) != 1 {
		t.Fatalf("told %+v and %+v", idle.last, turned.last)
	}
	asleep := make(chan bool, 1)
	go func() { asleep <- !idle.woken(300 * time.Millisecond) }()
	sp.Report(t, task, "", "")
	if !<-asleep {
		t.Error("a worker without tasks in the queue is woken")
	}
	if !turned.woken(5*time.Second) || turned.claim() == nil {
		t.Errorf("the worker that was turned away got nothing: %+v", turned.last)
	}
}

// TestUnused: who was woken for a place and finds nothing due for itself there is
// told to pass the wake-up on, and does not get it back.
func TestUnused(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	q := task.ParseQueue("q", nil)
	q.Threads = task.AtMost(1)
	sp.AddQueue(t, q)
	ids := sp.Open(t, inEnv("a"), inEnv("b"), inEnv("b"))
	busy, first, second := newIdler(t, sp, "wa", "n"), newIdler(t, sp, "w1", "m"), newIdler(t, sp, "w2", "o")
	busy.env, first.env, second.env = "a", "b", "c"
	sp.Open(t, inEnv("c"))
	held := busy.claim()
	first.settleDown()
	second.settleDown()
	for _, id := range ids[1:] { // what the first was turned away from is gone
		must(t, sp, id, statemachine.Manager, statemachine.Cancel)
	}
	sp.Report(t, held, "", "")
	by, err := storetest.Wait(t.Context(), sp.Store, first.wait, 5*time.Second)
	if err != nil || by == "" {
		t.Fatalf("woken by %q, error %v", by, err)
	}
	first.after = by
	if first.claim() != nil || !first.last.Unused {
		t.Errorf("claim %+v has used %s", first.last, by)
	}
	if err := sp.Store.PassOn(t.Context(), by); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the tasks that are gone have left a wake-up too
		if back, err := storetest.Wait(t.Context(), sp.Store, first.wait, 20*time.Millisecond); err != nil || back == by {
			t.Errorf("the first is woken by what it has passed on: %q, %v", back, err)
		}
	}
	if !second.woken(5*time.Second) || second.claim() == nil {
		t.Errorf("the second got nothing: %+v", second.last)
	}
	if sp.Store.Unused(by, &second.last) {
		t.Error("the claim of a task of the queue has not used the wake-up")
	}
	if node := tasks.WakeUp(sp.Key("wake_node:m")); !sp.Store.Unused(node, &first.last) || sp.Store.Unused(node, &tasks.ClaimReply{NodeFull: true}) ||
		sp.Store.Unused(node, &tasks.ClaimReply{Full: []string{"q"}}) || sp.Store.Unused(tasks.WakeUp(sp.Key("wake:q:::0")), &first.last) {
		t.Error("a wake-up of a node, or of a bucket, is judged otherwise")
	}
	inQ := []tasks.Claimed{{Bucket: task.Bucket{Queue: "q"}}}
	for name, c := range map[string]struct {
		reply  tasks.ClaimReply
		unused bool
	}{
		"nothing due":    {unused: true},
		"others due":     {tasks.ClaimReply{Full: []string{"other"}}, true},
		"another's task": {tasks.ClaimReply{Tasks: []tasks.Claimed{{}}}, true},
		"its task":       {tasks.ClaimReply{Tasks: inQ}, false},
		"full again":     {tasks.ClaimReply{Full: []string{"q"}}, false},
	} {
		if got := sp.Store.Unused(by, &c.reply); got != c.unused {
			t.Errorf("%s: unused %v", name, got)
		}
	}
}

// TestSecondPlaceWakes: of two places that become free only the first wakes
// somebody; who takes it and leaves the other lets the next know.
func TestSecondPlaceWakes(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	q := task.ParseQueue("q", nil)
	q.Threads = task.AtMost(2)
	sp.AddQueue(t, q)
	sp.Open(t, inEnv("a"), inEnv("a"), inEnv("b"), inEnv("c"))
	busy, b, c := newIdler(t, sp, "wa", "n"), newIdler(t, sp, "wb", "m"), newIdler(t, sp, "wc", "o")
	busy.env, b.env, c.env = "a", "b", "c"
	one, two := busy.claim(), busy.claim()
	b.settleDown()
	c.settleDown()
	sp.Report(t, one, "", "")
	sp.Report(t, two, "", "")
	if !b.woken(5*time.Second) || b.claim() == nil {
		t.Fatalf("nobody is woken: %+v", b.last)
	}
	if !c.woken(5*time.Second) || c.claim() == nil {
		t.Errorf("the second place woke nobody: %+v", c.last)
	}
}

// TestAllDueBucketsWake: a claim that leaves due tasks of several buckets behind
// wakes who waits for any of them, not only for the one that is next.
func TestAllDueBucketsWake(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	buckets := []task.Bucket{{Priority: 3}, {Priority: 2}, {Priority: 1}}
	for _, b := range buckets {
		spec := storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, b) })
		sp.Open(t, spec, spec)
		sp.Raw.Del(t.Context(), sp.Key("wake:"+b.Name())) // somebody who stopped has got it
	}
	r, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{Worker: "w", Request: "r", Candidates: storetest.Free(buckets...), Max: 1})
	if err != nil || len(r.Tasks) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, b := range buckets {
		if n := sp.Raw.LLen(t.Context(), sp.Key("wake:"+b.Name())).Val(); n != 1 {
			t.Errorf("%d wake-ups for bucket %s", n, b.Name())
		}
	}
}

// TestStopIsToldAgain: a stop that is asked for once more reaches the worker that
// runs the task now, also if another had it when it was asked for first.
func TestStopIsToldAgain(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	w := sp.Register(t, "w")
	sp.Open(t, storetest.Spec())
	sp.ClaimUnder(t, w, 1)
	stopCall(t, sp.Store).must(t)
	ctx := t.Context()
	// A client that knows no stops opens it again, and another worker claims it.
	sp.Raw.HSet(ctx, sp.Key("task:1"), "state", "open", "round", "1", "timeouts", "1", "1:open", "5")
	sp.Raw.ZRem(ctx, sp.Key("running"), "1")
	sp.Raw.ZAdd(ctx, sp.Key("open"), redis.Z{Score: 1, Member: "1"})
	reindexCall(t, sp.Store).must(t)
	v := sp.Register(t, "v")
	if got := sp.ClaimUnder(t, v, 1); len(got) != 1 {
		t.Fatal("not claimed")
	}
	if r := sp.Renew(t, v); len(r.Stops) != 0 {
		t.Errorf("told %v too soon for this test", r.Stops)
	}
	for range 2 {
		stopCall(t, sp.Store).must(t)
		if r := sp.Renew(t, v); len(r.Stops) != 1 {
			t.Errorf("v is to stop %v", r.Stops)
		}
	}
}

// TestClaimWantsNodeForResources, and a node whose name can stand in lists.
func TestClaimWantsNodeForResources(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	_, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{
		Worker: "w", Request: "r", Max: 1, Candidates: storetest.Free(task.Bucket{}), Resources: task.Resources{"gpu": 1},
	})
	refusedField(t, err, "resources")
	_, err = sp.Store.Register(t.Context(), task.Registration{Name: "w", Identity: "i", Node: "a,b"})
	refusedField(t, err, "node")
}

// TestOldestIsDue: a task that never starts is not the oldest that is due.
func TestOldestIsDue(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	sp.Open(t, storetest.Spec())
	sp.Raw.ZAdd(t.Context(), sp.Key("ready:default:::0"), redis.Z{Score: math.Inf(1), Member: "a1"})
	info, err := sp.Store.Queue(t.Context(), task.DefaultQueue)
	if err != nil || !info.Oldest.IsZero() || info.Due != 0 {
		t.Errorf("oldest %v, %d due, error %v", info.Oldest, info.Due, err)
	}
}

// refusedField wants a *statemachine.FieldError about that field.
func refusedField(t *testing.T, err error, field string) {
	t.Helper()
	if fe, ok := errors.AsType[*statemachine.FieldError](err); !ok || fe.Field != field {
		t.Errorf("error %v, want one about %s", err, field)
	}
}
