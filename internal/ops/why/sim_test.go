package why_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/internal/ops/why"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// TestReasonsAgainstClaims: in random worlds, what a claim takes has no reason that blocks, all else has one, and carrying
// out what is proposed makes a claim take it.
func TestReasonsAgainstClaims(t *testing.T) {
	t.Parallel()
	inWorlds(t, 0, 20)
}

// TestLongReasonsAgainstClaims is TestReasonsAgainstClaims in more worlds.
func TestLongReasonsAgainstClaims(t *testing.T) {
	t.Parallel()
	inWorlds(t, 20, 300)
}

func inWorlds(t *testing.T, first, end int) {
	t.Helper()
	claimable, blocked := 0, 0
	sp, worlds := storetest.New(t), rapid.Custom(Draw)
	for seed := first; seed < end; seed++ {
		c := &claimer{tb: t, sp: sp, got: map[claimKey][]int64{}}
		p := worlds.Example(seed)
		for id, e := range c.explain(p) {
			found := c.anyone(p, id)
			if err := c.check(p, id, e, found); err != nil {
				t.Fatalf("world %d, task %d: %v", seed, id, err)
			}
			if found {
				claimable++
			} else {
				blocked++
			}
		}
	}
	t.Logf("%d claimable tasks, %d others", claimable, blocked)
	if claimable == 0 || blocked == 0 {
		t.Error("want both")
	}
}

// claimer claims in worlds, each in the namespace anew. A task is claimable if there is a worker whose claim for all its
// free slots, with the first turn at the task's queue, gets it.
type claimer struct {
	tb testing.TB
	sp *storetest.Space
	// got are the tasks of the claims made so far.
	got map[claimKey][]int64
	// built is the world that the namespace is, and ids are those of the store by the world's.
	built *Plan
	ids   map[int64]int64
}

type claimKey struct {
	plan          *Plan
	worker, queue string
}

// explain asks about all tasks that wait.
func (c *claimer) explain(p *Plan) map[int64]why.Explanation {
	c.tb.Helper()
	c.build(p)
	told := map[int64]why.Explanation{}
	for i := range p.Tasks {
		if t := &p.Tasks[i]; t.State != statemachine.Running {
			e, err := why.Explain(c.situation(p, t))
			if err != nil {
				c.tb.Fatal(err)
			}
			told[t.ID] = e
		}
	}
	return told
}

// situation is what is read of the world to explain a task.
func (c *claimer) situation(p *Plan, t *Task) why.Situation {
	c.tb.Helper()
	s := why.Situation{Now: p.Now, Workers: p.Workers, Claims: func(claims []tasks.DryClaim) ([]tasks.Hindrance, error) {
		return c.sp.Store.DryClaims(c.tb.Context(), claims)
	}}
	var err error
	if s.Queues, _, err = c.sp.Store.Queues(c.tb.Context()); err != nil {
		c.tb.Fatal(err)
	}
	if s.Nodes, err = c.sp.Store.NodeRecords(c.tb.Context()); err != nil {
		c.tb.Fatal(err)
	}
	s.Task = tasks.TaskHeader{Task: statemachine.Task{
		ID: c.ids[t.ID], State: t.State, StartAfter: t.StartAfter, NotBefore: t.NotBefore, EndBefore: statemachine.Never,
	}, Bucket: t.Bucket}
	if t.Plan != "" {
		s.Record.Plan, s.Plan = planID(t.ID), task.Plan{State: t.Plan, HeldBy: "ann"}
		if t.FailedTask != 0 {
			s.Plan.HeldBy = strconv.FormatInt(t.FailedTask, 10)
		}
		s.HandHeld, s.Needs = t.HandHeld, t.Needs
	}
	return s
}

// check holds what is said of a task against what claims do.
func (c *claimer) check(p *Plan, id int64, e why.Explanation, claimable bool) error {
	if claimable == blocked(e) {
		return fmt.Errorf("claimable is %v, and the reasons are:\n%s", claimable, told(e))
	}
	for _, r := range e {
		if r.Text == "" || r.Blocks == (r.Change == why.Remedy{}) {
			return fmt.Errorf("a reason that blocks comes with a change, and only that; found %+v", r)
		}
	}
	if claimable {
		return nil
	}
	next, err := p.Changed(id, e)
	if err == nil && !c.anyone(next, id) {
		err = fmt.Errorf("not claimed once these changes are made:\n%s", told(e))
	}
	return err
}

func (c *claimer) anyone(p *Plan, id int64) bool {
	for i := range p.Workers {
		if c.claimed(p, &p.Workers[i], id) {
			return true
		}
	}
	return false
}

// claimed reports whether the worker claims the task.
func (c *claimer) claimed(p *Plan, w *task.Worker, id int64) bool {
	if w.State != task.WorkerReady || w.Reason != "" || w.Slots-w.Busy == 0 {
		return false
	}
	key := claimKey{p, w.Name, p.Task(id).Bucket.QueueName()}
	if _, done := c.got[key]; !done {
		c.got[key] = c.claim(p, w, key.queue)
	}
	return slices.Contains(c.got[key], id)
}

// claim is one claim in a world of its own; it returns the ids of the plan.
func (c *claimer) claim(p *Plan, w *task.Worker, queue string) []int64 {
	c.tb.Helper()
	c.build(p)
	c.built = nil
	rules, err := c.sp.Store.Rules(c.tb.Context(), w.Node)
	if err != nil {
		c.tb.Fatal(err)
	}
	limit := w.MaxThreads
	if rules.Node.MaxThreads != "" {
		limit = rules.Node.MaxThreads
	}
	turns := task.Candidates(rules.Buckets, rules.Queues, w.Offer())
	r, err := c.sp.Store.Claim(c.tb.Context(), tasks.ClaimRequest{
		Worker: w.Name, Request: conn.NewToken(), Candidates: turns, Rules: rules.Version, Known: rules.Known, Max: w.Slots - w.Busy,
		First: dueBefore(p, turns, queue),
		Node:  w.Node, MaxThreads: limit, Resources: w.Resources,
	})
	if err != nil || r.Stale {
		c.tb.Fatalf("claim: %+v, %v", r, err)
	}
	var got []int64
	for i := range r.Tasks {
		for id, stored := range c.ids {
			if stored == r.Tasks[i].Task.ID {
				got = append(got, id)
			}
		}
	}
	return got
}

// build makes the namespace the world, if it is not just that.
func (c *claimer) build(p *Plan) {
	c.tb.Helper()
	if c.built == p {
		return
	}
	if _, err := c.sp.Store.Flush(c.tb.Context()); err != nil {
		c.tb.Fatal(err)
	}
	c.built, c.ids = p, map[int64]int64{}
	c.sp.SetClock(c.tb, p.Now)
	for _, q := range p.Queues {
		if q.Name == task.DefaultQueue {
			c.must(c.sp.Store.SetQueue(c.tb.Context(), q.Name, func(old *task.QueueSpec) error { *old = q; return nil }))
			continue
		}
		c.sp.AddQueue(c.tb, q)
	}
	for i := range p.Tasks {
		if name := p.Tasks[i].Bucket.QueueName(); !slices.ContainsFunc(p.Queues, func(q task.QueueSpec) bool { return q.Name == name }) {
			_ = c.sp.Store.AddQueue(c.tb.Context(), task.ParseQueue(name, nil)) // no task opens without one; once is enough
		}
		if t := &p.Tasks[i]; t.State == statemachine.Running {
			c.run(t)
		}
	}
	for _, t := range c.inOrder(p) {
		c.ids[t.ID] = c.open(t)
	}
	for _, n := range p.Nodes {
		c.must(c.sp.Store.SetNode(c.tb.Context(), n.Name, func(old *task.NodeRecord) error { *old = n; return nil }))
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
}

func (c *claimer) must(_ any, err error) {
	c.tb.Helper()
	if err != nil {
		c.tb.Fatal(err)
	}
}

// inOrder are the waiting tasks by their ids, so that those of the store come in
// the same order.
func (c *claimer) inOrder(p *Plan) []*Task {
	var tasks []*Task
	for i := range p.Tasks {
		if p.Tasks[i].State != statemachine.Running {
			tasks = append(tasks, &p.Tasks[i])
		}
	}
	slices.SortFunc(tasks, func(x, y *Task) int { return int(x.ID - y.ID) })
	return tasks
}

// open opens a task at the moment it came to be open. A start that it was given
// and a rest after a failure say where it is in line.
func (c *claimer) open(t *Task) int64 {
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
func (c *claimer) run(t *Task) {
	c.tb.Helper()
	b := t.Bucket
	for name, n := range t.Got {
		if n == 0 {
			delete(t.Got, name)
		}
	}
	b.Resources = t.Got.Text()
	c.sp.Open(c.tb, storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, b) }))
	r, err := c.sp.Store.Claim(c.tb.Context(), tasks.ClaimRequest{
		Worker: "before", Request: conn.NewToken(), Candidates: storetest.Free(b), Max: b.Slots(),
		Node: t.Node, MaxThreads: task.Unlimited, Resources: task.Resources{"gpu": 1 << 20, "mem": 1 << 20},
	})
	if err != nil || len(r.Tasks) != 1 {
		c.tb.Fatalf("task %d does not run: %+v, %v", t.ID, r, err)
	}
}

// dueBefore is how many queues with due tasks come before a queue: what First has to
// be for it to have the first turn.
func dueBefore(p *Plan, turns []task.Candidate, queue string) int {
	n := 0
	for _, turn := range turns {
		if turn.Queue.Name == queue {
			return n
		}
		if slices.ContainsFunc(p.Tasks, func(t Task) bool {
			return t.State == statemachine.Open && t.Start() <= p.Now && slices.Contains(turn.Buckets, t.Bucket)
		}) {
			n++
		}
	}
	return 0
}
