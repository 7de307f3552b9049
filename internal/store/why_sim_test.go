package store_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/internal/ops/why"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/whytest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// whyWorlds is how many random worlds are held against the claim script.
const whyWorlds = 200

// TestLongReasonsAgainstTheScript is the test of package why with the claim script
// in the place of its twin.
func TestLongReasonsAgainstTheScript(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	worlds := rapid.Custom(whytest.Draw)
	var all whytest.Tally
	for seed := range whyWorlds {
		c := &scriptClaimer{tb: t, sp: sp, got: map[claimKey][]int64{}}
		n, err := whytest.Check(worlds.Example(seed), c)
		if err != nil {
			t.Fatalf("world %d: %v", seed, err)
		}
		all.Claimable, all.Blocked = all.Claimable+n.Claimable, all.Blocked+n.Blocked
	}
	t.Logf("%d claimable tasks, %d others", all.Claimable, all.Blocked)
	if all.Claimable == 0 || all.Blocked == 0 {
		t.Errorf("%+v: want both", all)
	}
}

// scriptClaimer builds the world anew for each claim.
type scriptClaimer struct {
	tb testing.TB
	sp *storetest.Space
	// got are the tasks of the claims made so far.
	got map[claimKey][]int64
}

type claimKey struct {
	plan          *whytest.Plan
	worker, queue string
}

// Claimed implements whytest.Claimer.
func (c *scriptClaimer) Claimed(p *whytest.Plan, worker int, id int64) bool {
	w := p.Workers[worker]
	if w.State != why.Ready || w.Reason != "" || w.Free() == 0 {
		return false
	}
	queue := p.Task(id).Bucket.QueueName()
	key := claimKey{p, w.Worker, queue}
	if _, done := c.got[key]; !done {
		c.got[key] = c.claim(p, &w, queue)
	}
	got := slices.Contains(c.got[key], id)
	if twin := (whytest.Twin{}).Claimed(p, worker, id); twin != got {
		c.tb.Fatalf("worker %s claimed task %d: %v, the twin: %v", w.Worker, id, got, twin)
	}
	return got
}

// claim is one claim in a world of its own; it returns the ids of the plan.
func (c *scriptClaimer) claim(p *whytest.Plan, w *why.Worker, queue string) []int64 {
	c.tb.Helper()
	if _, err := c.sp.Store.Flush(c.tb.Context()); err != nil {
		c.tb.Fatal(err)
	}
	planned := c.build(p)
	c.readsAs(p, planned)
	rules, err := c.sp.Store.Rules(c.tb.Context(), w.Node)
	if err != nil {
		c.tb.Fatal(err)
	}
	limit := w.MaxThreads
	if rules.Node.MaxThreadsSet {
		limit = rules.Node.MaxThreads
	}
	turns := task.Candidates(rules.Buckets, rules.Queues, w.Offer)
	r, err := c.sp.Store.Claim(c.tb.Context(), store.ClaimRequest{
		Worker: w.Worker, Request: store.NewToken(), Candidates: turns, Rules: rules.Version, Known: rules.Known, Max: w.Free(),
		First: dueBefore(p, turns, queue),
		Node:  w.Node, MaxThreads: limit, Resources: w.Resources,
	})
	if err != nil || r.Stale {
		c.tb.Fatalf("claim: %+v, %v", r, err)
	}
	var got []int64
	for i := range r.Tasks {
		got = append(got, planned[r.Tasks[i].ID])
	}
	return got
}

// readsAs holds what is read of the world against the plan.
func (c *scriptClaimer) readsAs(p *whytest.Plan, planned map[int64]int64) {
	c.tb.Helper()
	want := p.Situation(p.Tasks[len(p.Tasks)-1].ID)
	if want.At() != p.Now {
		return // its lines are those of a later moment
	}
	most := 1
	for i := range p.Workers {
		most = max(most, p.Workers[i].Free())
	}
	lines, err := c.sp.Store.Lines(c.tb.Context(), store.Bucket{}, store.Waiting{}, p.Now, most)
	if err != nil || len(lines) != len(want.Lines) {
		c.tb.Fatalf("lines %+v, %v, want %+v", lines, err, want.Lines)
	}
	for _, l := range lines {
		i := slices.IndexFunc(want.Lines, func(w why.Line) bool { return w.Bucket.Name() == l.Bucket.Name() })
		var first []why.Waiting
		for _, w := range l.First {
			first = append(first, why.Waiting{ID: planned[w.ID], Due: w.Due})
		}
		if i < 0 || l.Due != want.Lines[i].Due || !slices.Equal(first, want.Lines[i].First) {
			c.tb.Fatalf("line %+v, want one of %+v", l, want.Lines)
		}
	}
	queues, _, err := c.sp.Store.Queues(c.tb.Context())
	for _, q := range want.Queues {
		i := slices.IndexFunc(queues, func(o store.QueueInfo) bool { return o.Name == q.Name })
		if err != nil || i < 0 || queues[i].Waiting != q.Waiting || queues[i].Running != q.Running {
			c.tb.Fatalf("queues %+v, %v, want %+v", queues, err, q)
		}
	}
}

// build makes the world and returns the plan's ids by the store's.
func (c *scriptClaimer) build(p *whytest.Plan) map[int64]int64 {
	c.tb.Helper()
	c.sp.SetClock(c.tb, p.Now)
	for _, q := range p.Queues {
		if q.Name == task.DefaultQueue {
			c.must(c.sp.Store.SetQueue(c.tb.Context(), q.Name, func(old *task.Queue) error { *old = q; return nil }))
			continue
		}
		c.sp.AddQueue(c.tb, q)
	}
	planned := map[int64]int64{}
	for i := range p.Tasks {
		if name := p.Tasks[i].Bucket.QueueName(); !slices.ContainsFunc(p.Queues, func(q task.Queue) bool { return q.Name == name }) {
			_ = c.sp.Store.AddQueue(c.tb.Context(), task.NewQueue(name)) // no task opens without one; once is enough
		}
		if t := &p.Tasks[i]; t.State == statemachine.Running {
			c.run(t)
		}
	}
	for _, t := range c.inOrder(p) {
		planned[c.open(t)] = t.ID
	}
	for _, n := range p.Nodes {
		c.must(c.sp.Store.SetNode(c.tb.Context(), n.Name, func(old *task.Node) error { *old = n; return nil }))
		if f := n.Fields(); len(f) > 0 {
			c.must(0, c.sp.Raw.HSet(c.tb.Context(), c.sp.Key("node:"+n.Name), f).Err())
		}
	}
	mode := "warn"
	if p.Gate {
		mode = "on"
	}
	c.must(0, c.sp.Store.PublishQuarantine(c.tb.Context(), mode))
	c.sp.SetClock(c.tb, p.Now)
	return planned
}

func (c *scriptClaimer) must(_ any, err error) {
	c.tb.Helper()
	if err != nil {
		c.tb.Fatal(err)
	}
}

// inOrder are the waiting tasks by their ids, so that those of the store come in
// the same order.
func (c *scriptClaimer) inOrder(p *whytest.Plan) []*whytest.Task {
	var tasks []*whytest.Task
	for i := range p.Tasks {
		if p.Tasks[i].State != statemachine.Running {
			tasks = append(tasks, &p.Tasks[i])
		}
	}
	slices.SortFunc(tasks, func(x, y *whytest.Task) int { return int(x.ID - y.ID) })
	return tasks
}

// open opens a task at the moment it came to be open. A start that it was given
// and a rest after a failure say where it is in line.
func (c *scriptClaimer) open(t *whytest.Task) int64 {
	c.tb.Helper()
	c.sp.SetClock(c.tb, t.Since)
	return c.sp.Open(c.tb, storetest.Spec(func(s *task.Definition) {
		storetest.SetBucket(s, t.Bucket)
		if t.StartAfter > 0 || t.NotBefore > 0 {
			storetest.Set(s, "start_after", t.Start().Text())
		}
		if t.State == statemachine.Blocked {
			storetest.Set(s, "hold", "by the plan")
		}
	}))[0]
}

// run lets a task run on its node, whatever the limits say.
func (c *scriptClaimer) run(t *whytest.Task) {
	c.tb.Helper()
	b := t.Bucket
	for name, n := range t.Got {
		if n == 0 {
			delete(t.Got, name)
		}
	}
	b.Resources = t.Got.Text()
	c.sp.Open(c.tb, storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, b) }))
	r, err := c.sp.Store.Claim(c.tb.Context(), store.ClaimRequest{
		Worker: "before", Request: store.NewToken(), Candidates: storetest.Free(b), Max: 1,
		Node: t.Node, MaxThreads: task.NoLimit, Resources: task.Resources{"gpu": 1 << 20, "mem": 1 << 20},
	})
	if err != nil || len(r.Tasks) != 1 {
		c.tb.Fatalf("task %d does not run: %+v, %v", t.ID, r, err)
	}
}

// dueBefore is how many queues with due tasks come before a queue: what First has to
// be for it to have the first turn.
func dueBefore(p *whytest.Plan, turns []task.Candidate, queue string) int {
	n := 0
	for _, turn := range turns {
		if turn.Queue.Name == queue {
			return n
		}
		if slices.ContainsFunc(p.Tasks, func(t whytest.Task) bool {
			return t.State == statemachine.Open && t.Start() <= p.Now && slices.Contains(turn.Buckets, t.Bucket)
		}) {
			n++
		}
	}
	return 0
}
