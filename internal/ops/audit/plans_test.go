package audit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func at(i int) task.Need { return task.Need{Index: i} }

// addTo adds tasks to a plan; each needs what is given.
func addTo(ctx context.Context, s *store.Store, plan task.PlanID, key string, specs ...task.Definition) ([]int64, error) {
	for i := range specs {
		storetest.Set(&specs[i], "program", "p", "source", "s", "timeout", "60", "max_losses", "9")
	}
	opened, err := s.OpenAll(ctx, tasks.OpenRequest{Key: key, Plan: plan, Specs: specs})
	ids := make([]int64, len(opened))
	for i := range opened {
		ids[i] = opened[i].ID
	}
	return ids, err
}

// planned makes a plan of tasks, and makes it ready if asked.
func planned(t *testing.T, s *store.Store, name string, on task.OnFailure, ready bool, specs ...task.Definition) (plan task.PlanID, ids []int64) {
	t.Helper()
	plan, err := s.NewPlan(t.Context(), task.PlanSpec{RequestKey: name, Name: name, OnFailure: on})
	if err == nil {
		ids, err = addTo(t.Context(), s, plan, name, specs...)
	}
	if err == nil && ready {
		_, err = s.SteerPlan(t.Context(), plan, task.PlanReady, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	return plan, ids
}

// doPlans does what servers do for plans, until nothing is left to do.
func doPlans(t *testing.T, s *store.Store) {
	t.Helper()
	for storetest.AdvancePlans(t, s, 2, true) {
	}
}

// plansWorld has a plan in each of many situations: the tasks 1 to 15 in plans 1 to 5, and 16 in none.
func plansWorld(t *testing.T) (ns string, s *store.Store) {
	t.Helper()
	ns = redistest.Namespace(t)
	s = worktest.Open(t, ns)
	need := func(needs ...task.Need) task.Definition { return task.Definition{Needs: needs} }
	// 1 has succeeded, 2 needs it and is open, 3 and 4 wait, 4 for both.
	_, _ = planned(t, s, "runs", "", true, need(), need(at(0)), need(at(1)), need(at(0), at(1), task.Need{Index: 2}))
	// 5 and 6 are done, 6 was skipped.
	_, _ = planned(t, s, "over", "", true, need(), need(task.Need{On: task.NeedsFailure}))
	// 7 has failed, 8 waits for its retry, 9 runs all the same, and is put aside; 10 waits for 8.
	held, _ := planned(t, s, "held", task.FailureHolds, true, storetest.Define("input", "fail"), need(at(0)), need(task.Need{On: task.NeedsAny}), need(at(1)))
	// 11 has failed, 12 and 13 are cancelled, and then 11 is repeated as 16.
	failed, _ := planned(t, s, "failed", "", true, storetest.Define("input", "fail"), need(at(0)), need(at(1)))
	_, _ = planned(t, s, "built", "", false, need(), need(at(0))) // 14 and 15
	doPlans(t, s)
	worktest.Drain(t, s, play)
	doPlans(t, s)
	if _, err := addTo(t.Context(), s, failed, "again", task.Definition{RetryOf: 11}); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Plan(t.Context(), held); err != nil || p.State != task.PlanHeld {
		t.Fatalf("%+v, %v, want it held", p, err)
	}
	return ns, s
}

// TestSoundPlans: nothing is found, in the middle of being told or not.
func TestSoundPlans(t *testing.T) {
	t.Parallel()
	_, s := plansWorld(t)
	for _, state := range []task.PlanState{"", task.PlanHeld, task.PlanReady, task.PlanCancelled} {
		if state != "" {
			if _, err := s.SteerPlan(t.Context(), 1, state, "me"); err != nil {
				t.Fatal(err)
			}
		}
		if r, err := verify(t, s); err != nil || !r.OK() || len(r.Notes) > 0 || r.Plans != 5 {
			t.Fatalf("%s: %+v, %+v, %v, want nothing in 5 plans", state, r, r.Notes, err)
		}
	}
	worktest.Drain(t, s, play) // whatever is open has ended, and nobody was told
	for range 2 {
		if r, err := verify(t, s); err != nil || !r.OK() {
			t.Fatalf("%+v, %v, want nothing", r.Violations, err)
		}
		doPlans(t, s)
	}
}

// planDamage is done by hand; the first that is said must be about that task, 0 for the plan.
type planDamage struct {
	name     string
	id       int64
	says     string
	mendable bool
	commands [][]string
}

var planDamages = []planDamage{
	{"a wrong total", 0, "plan 1 counts 9 tasks, and there are 4", false, [][]string{{"HSET", "%n:plan:1", "total", "9"}}},
	{"too little left", 0, "plan 1 counts 1 that have not ended", false, [][]string{{"HSET", "%n:plan:1", "left", "1"}}},
	{"an end not counted", 0, "plan 1 counts 0 succeeded, and there are 1", false, [][]string{{"HINCRBY", "%n:plan:1", "left", "1"}}},
	{"a skip not counted", 0, "plan 2 counts 0 that were skipped", false, [][]string{{"HDEL", "%n:plan:2", "n:skipped"}}},
	{"bad counted", 0, "plan 1 counts 3 that ended badly", false, [][]string{{"HSET", "%n:plan:1", "bad", "3"}}},
	{"completed too early", 0, "plan 1 is completed, but 3 of its tasks have not ended", false, [][]string{{"HSET", "%n:plan:1", "state", "completed", "ended", "1"}}},
	{"never completed", 0, "plan 2 is ready, but all its tasks have ended", false, [][]string{{"HSET", "%n:plan:2", "state", "ready"}}},
	{"completed since never", 0, "plan 2 is completed, but it does not say since when", false, [][]string{{"HDEL", "%n:plan:2", "ended"}}},
	{"failed without a failure", 0, "plan 2 is failed, but none", false, [][]string{{"HSET", "%n:plan:2", "state", "failed"}}},
	{"no state", 0, "plan 5 is odd, but there is no such state", false, [][]string{{"HSET", "%n:plan:5", "state", "odd"}}},
	{"waits for more than it does", 3, "it waits for 2, but 1 will tell it", false, [][]string{{"HSET", "%n:task:3", "waits", "2"}}},
	{"waits for fewer", 4, "it waits for 1, but 2 will tell it", false, [][]string{{"HSET", "%n:task:4", "waits", "1"}}},
	{"waits for nobody, and should", 3, "it needs task 2, which has not ended and will not tell it", false, [][]string{{"LREM", "%n:dependants:2", "0", "3"}, {"HSET", "%n:task:3", "waits", "0"}, {"ZADD", "%n:freed:1", "3", "3"}}},
	{"ran without a result", 2, "it is open, but has not got the results of 1", false, [][]string{{"HSET", "%n:task:2", "waits", "1"}}},
	{"does not know that it feeds", 2, "2 need it, but it does not say so", false, [][]string{{"HDEL", "%n:task:2", "feeds"}}},
	{"left half told", 7, "left half told", false, [][]string{{"RENAME", "%n:dependants:7", "%n:stuck:7"}}},
	{"not among those to be moved", 14, "waits for nothing, but is not among", true, [][]string{{"ZREM", "%n:freed:5", "14"}}},
	{"doomed, and not to be moved", 8, "waits for nothing, but is not among", true, [][]string{{"HSET", "%n:task:8", "doomed_by", "7"}}},
	{"to be moved too early", 15, "it is among the tasks of plan 5 to be moved, but is blocked and waits for 1", true, [][]string{{"ZADD", "%n:freed:5", "15", "15"}}},
	{"to be moved by another plan", 3, "it is among the tasks of plan 5 to be moved, but belongs to plan 1", true, [][]string{{"ZADD", "%n:freed:5", "3", "3"}}},
	{"to be moved and unknown", 99, "plan 5 knows of it, and there is no such task", false, [][]string{{"ZADD", "%n:freed:5", "99", "99"}}},
	{"ended, and nobody is told", 5, "it has ended, and 1 that need it will never be told", true, [][]string{{"RPUSH", "%n:dependants:5", "6:failure"}, {"HSET", "%n:task:5", "feeds", "1"}}},
	{"repeated, and still waited for", 11, "task 16 repeats it, but 1 still wait for it", false, [][]string{{"RPUSH", "%n:dependants:11", "12"}}},
	{"plan not on the list", 0, "1 tasks of plan 5 wait to be moved, and the plan is not on the list of the servers", true, [][]string{{"HSET", "%n:plan:5", "state", "ready"}, {"ZREM", "%n:draining", "p5"}}},
	{"not on the list of the plan", 3, "it belongs to plan 1, which does not list it", false, [][]string{{"LREM", "%n:plan_tasks:1", "0", "3"}}},
	{"a foreign task on the list", 5, "plan 1 lists it, or a task of it does, but it belongs to plan 2", false, [][]string{{"RPUSH", "%n:dependants:2", "5"}}},
	{"listed twice", 0, "plan 1 lists 5 tasks, some of them twice", false, [][]string{{"RPUSH", "%n:plan_tasks:1", "3"}}},
	{"no such plan", 5, "it belongs to plan 2, and there is no such plan", false, [][]string{{"DEL", "%n:plan:2"}}},
}

// TestPlanDamage: each is found. A server puts right what only concerns the lists of servers.
func TestPlanDamage(t *testing.T) {
	t.Parallel()
	for _, d := range planDamages {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			ns, s := plansWorld(t)
			d.check(t, ns, s)
		})
	}
}

func (d *planDamage) check(t *testing.T, ns string, s *store.Store) {
	t.Helper()
	for _, words := range d.commands {
		redistest.Shared(t).Do(t, fill(words, ns, 0)...)
	}
	r, err := verify(t, s)
	if err != nil || !said(r.Violations, d.id, d.says) {
		t.Fatalf("found %+v, %v, want about task %d: %s", r.Violations, err, d.id, d.says)
	}
	if d.mendable {
		served(t, ns, s, func(r *Report) bool { return !said(r.Violations, d.id, d.says) })
	}
}

// said reports whether that was found, and nothing else about tasks, but for what follows from it.
func said(found []Violation, id int64, text string) bool {
	for _, v := range found {
		if v.Kind == Plan && v.ID == id && strings.Contains(v.Text, text) {
			return true
		}
	}
	return false
}

// planner makes plans, lets them grow, holds and resumes them, and repeats what has failed.
func planner(s *store.Store) func(context.Context) error {
	return func(ctx context.Context) error {
		for n := 0; ctx.Err() == nil; n++ {
			if err := makePlan(ctx, s, n); err != nil && ctx.Err() == nil {
				return err
			}
		}
		return nil
	}
}

func makePlan(ctx context.Context, s *store.Store, n int) error {
	on := []task.OnFailure{task.FailureCancels, task.FailureHolds, task.FailureContinues}[n%3]
	plan, err := s.NewPlan(ctx, task.PlanSpec{RequestKey: fmt.Sprint(n), OnFailure: on})
	if err != nil {
		return err
	}
	specs := make([]task.Definition, 12)
	for i := range specs {
		if i > 3 {
			specs[i].Needs = []task.Need{at(i - 1), at(i - 4), {Index: i - 3, On: task.NeedsAny}}
		}
	}
	ids, err := addTo(ctx, s, plan, fmt.Sprint("tasks", n), specs...)
	if err != nil {
		return err
	}
	for step, state := range []task.PlanState{task.PlanReady, task.PlanHeld, task.PlanReady} {
		if _, err := s.SteerPlan(ctx, plan, state, "boss"); err != nil {
			return ignorePlan(err)
		}
		if _, err := addTo(ctx, s, plan, fmt.Sprint("more", n, step), task.Definition{Needs: []task.Need{{Task: ids[step]}, {Task: ids[9]}}}); err != nil {
			return ignorePlan(err)
		}
		if err := retryFailed(ctx, s, plan, ids); err != nil {
			return ignorePlan(err)
		}
	}
	return nil
}

// ignorePlan forgives what comes of a plan that ends at another moment each time.
func ignorePlan(err error) error {
	if tasks.IsBusy(err) || strings.Contains(err.Error(), task.ErrPlanState.Error()) {
		return nil
	}
	return err
}

func retryFailed(ctx context.Context, s *store.Store, plan task.PlanID, ids []int64) error {
	tasks, err := s.Planned(ctx, plan, ids, 0)
	for i := range tasks {
		if t := &tasks[i]; err == nil && t.End == statemachine.Failed && t.RetriedBy == 0 {
			_, err = addTo(ctx, s, plan, fmt.Sprint("retry", t.ID), task.Definition{RetryOf: t.ID, Needs: t.Needs})
		}
	}
	return err
}

// TestBusyPlans: while a server, a worker and a manager are at work on plans, nothing is found about them.
func TestBusyPlans(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s := worktest.Open(t, ns)
	defer serve(t, ns)()
	defer background(t, (&crew{Store: worktest.Open(t, ns)}).run)()
	defer background(t, planner(worktest.Open(t, ns)))()
	wait.Eventually(t, 20*time.Second, func() bool {
		n, err := s.LastID(t.Context())
		return err == nil && n > 200
	}, "nothing is opened")
	for range 2 {
		r, err := Verify(t.Context(), s)
		if err != nil || !r.OK() || r.Plans == 0 {
			t.Errorf("%+v, %v, want nothing in %d plans", r.Violations, err, r.Plans)
		}
	}
}

// A task that was retried as often as the scripts allow is followed to the last one.
func TestManyRetriesAreFollowed(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s := worktest.Open(t, ns)
	specs := make([]task.Definition, 2+mostRetries)
	specs[1].Needs = []task.Need{at(0)}
	plan, ids := planned(t, s, "retried", "", false, specs...)
	for i, before := range append(ids[:1:1], ids[2:len(ids)-1]...) {
		redistest.Shared(t).Do(t, "HSET", fmt.Sprintf("%s:task:%d", ns, before), "retried_by", fmt.Sprint(ids[2+i]))
	}
	p := &planAudit{a: newAuditor(s), id: plan}
	_, needs, err := p.around(t.Context(), ids[1])
	if err != nil || len(needs) != 1+mostRetries || needs[mostRetries].ID != ids[len(ids)-1] {
		t.Errorf("%d tasks are around task %d, %v; want the need and its %d retries", len(needs), ids[1], err, mostRetries)
	}
}
