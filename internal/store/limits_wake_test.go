package store_test

import (
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
)

// idler is a worker that claims one task at a time, by the rules in force.
type idler struct {
	t            *testing.T
	sp           *storetest.Space
	worker, node string
	// nodeCap is that of its node, env its own.
	nodeCap task.Limit
	env     string
	after   tasks.WakeUp // what its next claim comes after

	last tasks.ClaimReply
	wait tasks.WaitFor
}

func newIdler(t *testing.T, sp *storetest.Space, worker, node string) *idler {
	t.Helper()
	return &idler{t: t, sp: sp, worker: worker, node: node, nodeCap: task.Unlimited}
}

// claim returns what it got, nil for nothing.
func (w *idler) claim() *tasks.Claimed {
	w.t.Helper()
	req := byRulesIn(w.t, w.sp.Store, w.worker, w.node, w.env)
	req.MaxThreads, req.Woken = w.nodeCap, w.after
	r, err := w.sp.Store.Claim(w.t.Context(), req)
	if err != nil || r.Stale {
		w.t.Fatalf("claimed %+v, error %v", r, err)
	}
	w.last = r
	w.wait = tasks.WaitFor{
		Worker: w.worker, Node: w.node, Candidates: req.Candidates, Full: r.Full, Elsewhere: r.Elsewhere, NodeFull: r.NodeFull,
		Now: r.Now,
	}
	if len(r.Tasks) == 0 {
		return nil
	}
	return &r.Tasks[0]
}

// woken waits at most d for work.
func (w *idler) woken(d time.Duration) bool {
	w.t.Helper()
	by, err := storetest.Wait(w.t.Context(), w.sp.Store, w.wait, d)
	if err != nil {
		w.t.Fatal(err)
	}
	return by != ""
}

// settleDown claims and waits until nothing is left that wakes it.
func (w *idler) settleDown() {
	w.t.Helper()
	for range 20 {
		if got := w.claim(); got != nil {
			w.t.Fatalf("%s claims task %d, want nothing", w.worker, got.Task.ID)
		}
		if !w.woken(20 * time.Millisecond) {
			return
		}
	}
	w.t.Fatalf("%s is woken again and again, and there is nothing for it", w.worker)
}

// TestFreedPlaceWakes: a worker that waits for a place is woken when it is free, and
// not one that would find none.
func TestFreedPlaceWakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set     [2]string
		nodeCap task.Limit
		asks    string
		// far: a place of any node serves a waiter of any other.
		far bool
	}{
		"threads":    {set: [2]string{"threads", "1"}, nodeCap: task.Unlimited, far: true},
		"maxthreads": {set: [2]string{"maxthreads", "1"}, nodeCap: task.Unlimited},
		"node cap":   {nodeCap: task.AtMost(1)},
		"resource":   {nodeCap: task.Unlimited, asks: "gpu=2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			q := task.ParseQueue("q", nil)
			if c.set[0] != "" {
				if err := q.Set(c.set[0], c.set[1]); err != nil {
					t.Fatal(err)
				}
			}
			sp.AddQueue(t, q)
			spec := storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, task.Bucket{Queue: "q", Resources: c.asks}) })
			sp.Open(t, spec, spec, spec, spec)
			a, b, far := newIdler(t, sp, "a", "n"), newIdler(t, sp, "b", "n"), newIdler(t, sp, "c", "m")
			a.nodeCap, b.nodeCap, far.nodeCap = c.nodeCap, c.nodeCap, c.nodeCap
			task := a.claim()
			if task == nil {
				t.Fatalf("claimed nothing: %+v", a.last)
			}
			if !c.far && far.claim() == nil { // its own place is taken, so that it waits too
				t.Fatalf("claimed nothing on the other node: %+v", far.last)
			}
			b.settleDown()
			far.settleDown()
			if len(b.last.Full) != 1 || b.last.More {
				t.Errorf("told %+v", b.last)
			}
			sp.Report(t, task, "", "")
			waiter, other := b, far
			if c.far {
				waiter, other = far, b
			}
			if !c.far && other.woken(20*time.Millisecond) {
				t.Error("a worker of another node is woken")
			}
			if !waiter.woken(5 * time.Second) {
				t.Fatal("nobody is woken")
			}
			if waiter.claim() == nil {
				t.Errorf("woken and told %+v", waiter.last)
			}
		})
	}
}

// TestChangedRulesWake: a limit that was raised wakes a waiter, and one that was
// lowered or a paused queue is heard of at once, so that it can claim anew.
func TestChangedRulesWake(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	q := task.ParseQueue("q", nil)
	q.Threads = task.AtMost(1)
	sp.AddQueue(t, q)
	in := storetest.Spec(func(s *task.Definition) { storetest.Set(s, "queue", "q") })
	sp.Open(t, in, in, in)
	a, b := newIdler(t, sp, "a", "n"), newIdler(t, sp, "b", "m")
	a.claim()
	b.settleDown()
	_, rules := listen(t, sp.Store, "b")
	set := func(key, value string) {
		t.Helper()
		if _, err := sp.Store.SetQueue(t.Context(), "q", func(q *task.QueueSpec) error { return q.Set(key, value) }); err != nil {
			t.Fatal(err)
		}
	}
	set("threads", "2")
	if !b.woken(5*time.Second) || b.claim() == nil {
		t.Errorf("a raised limit wakes nobody: %+v", b.last)
	}
	heard := func(key, value string) {
		t.Helper()
		deadline := time.After(10 * time.Second)
		for {
			set(key, value)
			select {
			case <-rules:
				return
			case <-deadline:
				t.Fatal("a change is not announced")
			case <-time.After(50 * time.Millisecond): // the subscription may come later
			}
		}
	}
	heard("paused", "true")
	stale := byRules(t, sp.Store, "b", "m")
	set("threads", "none")
	if r, err := sp.Store.Claim(t.Context(), stale); err != nil || !r.Stale || len(r.Tasks) > 0 {
		t.Errorf("claimed %+v under old rules, error %v", r, err)
	}
	if b.claim() != nil || len(b.wait.Candidates) != 0 {
		t.Errorf("claims from a paused queue: %+v", b.last)
	}
	heard("paused", "false")
	if b.claim() == nil {
		t.Errorf("nothing is claimed from a resumed queue: %+v", b.last)
	}
	if _, err := sp.Store.SetNode(t.Context(), "m", func(n *task.NodeRecord) error { return n.Set("maxthreads", "0") }); err != nil {
		t.Fatal(err)
	}
	if rules, err := sp.Store.Rules(t.Context(), "m"); err != nil || rules.Node.MaxThreads != task.AtMost(0) {
		t.Errorf("rules %+v, error %v", rules, err)
	}
}

// TestNoBusyLoop: who can do nothing is not woken again and again, however many
// tasks are due, and passes on what was meant for others.
func TestNoBusyLoop(t *testing.T) {
	t.Parallel()
	for name, set := range map[string][2]string{
		"fleet full": {"threads", "2"}, "nodes full, fleet not": {"threads", "9"}, "nodes full": {"threads", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			q := task.ParseQueue("q", nil)
			q.MaxThreads = task.AtMost(1)
			if err := q.Set(set[0], set[1]); err != nil {
				t.Fatal(err)
			}
			sp.AddQueue(t, q)
			in := storetest.Spec(func(s *task.Definition) { storetest.Set(s, "queue", "q") })
			sp.Open(t, in, in, in, in, in)
			newIdler(t, sp, "a", "n").claim()
			newIdler(t, sp, "b", "m").claim()
			c, d := newIdler(t, sp, "c", "n"), newIdler(t, sp, "d", "m")
			c.settleDown()
			d.settleDown()
			woken := 0
			for range 5 { // they poll, and tell each other nothing
				for _, w := range []*idler{c, d} {
					if w.claim() != nil {
						t.Fatalf("claimed %+v", w.last)
					}
					if w.woken(20 * time.Millisecond) {
						woken++
					}
				}
			}
			if woken > 0 {
				t.Errorf("woken %d times for nothing", woken)
			}
			sp.Open(t, in) // further work is not for them either
			if c.woken(20*time.Millisecond) || d.woken(20*time.Millisecond) {
				t.Error("woken by a task there is no place for")
			}
			if e := newIdler(t, sp, "e", "o"); set[1] != "2" && e.claim() == nil {
				t.Errorf("a node with places gets nothing: %+v", e.last)
			}
		})
	}
}

// TestPassedOn: a wake-up that reaches a worker without a place goes on to one that
// has a place, on whichever list it waits.
func TestPassedOn(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	q := task.ParseQueue("q", nil)
	q.MaxThreads = task.AtMost(1)
	sp.AddQueue(t, q)
	in := storetest.Spec(func(s *task.Definition) { storetest.Set(s, "queue", "q") })
	sp.Open(t, in)
	a, b, c := newIdler(t, sp, "a", "n"), newIdler(t, sp, "b", "n"), newIdler(t, sp, "c", "m")
	a.claim()
	b.settleDown()
	c.settleDown()
	sp.Open(t, in)
	if !b.woken(5*time.Second) || b.claim() != nil {
		t.Fatalf("%+v", b.last)
	}
	if !c.woken(5*time.Second) || c.claim() == nil {
		t.Errorf("the wake-up was not passed on: %+v", c.last)
	}
}
