package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// newJob makes a job of tasks that are archived as they end, and is still being built.
func newJob(tb testing.TB, sp *storetest.Space, n int, change ...func(*task.Definition)) (task.PlanID, []int64) {
	tb.Helper()
	id, err := sp.Store.NewPlan(tb.Context(), task.PlanSpec{Name: "sweep", Job: true, RequestKey: conn.NewToken()})
	if err != nil {
		tb.Fatal(err)
	}
	return id, addToJob(tb, sp, id, n, change...)
}

func addToJob(tb testing.TB, sp *storetest.Space, id task.PlanID, n int, change ...func(*task.Definition)) []int64 {
	tb.Helper()
	specs := make([]task.Definition, n)
	for i := range specs {
		specs[i] = storetest.Spec(append(change, func(d *task.Definition) { storetest.Set(d, "archive", task.ArchiveAtOnce) })...)
	}
	ids, err := sp.Store.Open(tb.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: specs, Plan: id, Job: id > 0})
	if err != nil {
		tb.Fatal(err)
	}
	return ids
}

// finish reports tasks in one call, those that do not fail to their end.
func finish(tb testing.TB, sp *storetest.Space, held []tasks.Claimed, fails ...int64) {
	tb.Helper()
	commits := make([]tasks.Commit, len(held))
	for i := range held {
		failed := slices.Contains(fails, held[i].Task.ID)
		m, err := statemachine.Decide(&held[i].Task, statemachine.Occurrence{
			Event: statemachine.Report, Actor: statemachine.Worker, Claim: held[i].Task.Current.Claim, Settles: !failed, Failed: failed,
		}, held[i].Task.Current.Running)
		if err != nil {
			tb.Fatal(err)
		}
		if commits[i] = (tasks.Commit{Move: m, Writer: "w"}); failed {
			commits[i].Fields = []string{"0:error", "no"}
		}
	}
	out, err := sp.Store.Apply(tb.Context(), commits...)
	if err != nil || slices.ContainsFunc(out, func(o tasks.Outcome) bool { return o.Result != statemachine.Moved }) {
		tb.Fatalf("%+v, %v", out, err)
	}
}

func jobIs(t *testing.T, sp *storetest.Space, id task.PlanID, state task.PlanState, total, left int64, ended endings) {
	t.Helper()
	p, err := sp.Store.Plan(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ended, p.Ended); diff != "" || p.State != state || p.Total != total || p.Left != left || !p.Job {
		t.Errorf("job %d is %s, %d of %d left (want %s, %d of %d):\n%s", id, p.State, p.Left, p.Total, state, left, total, diff)
	}
}

func ready(t *testing.T, sp *storetest.Space, id task.PlanID) {
	t.Helper()
	if _, err := sp.Store.SteerPlan(t.Context(), id, task.PlanReady, ""); err != nil {
		t.Fatal(err)
	}
}

type endings = map[statemachine.State]int64

// Tasks of a job run while others are still being added, to their end and into the archive, as tasks of no plan do. The job is over
// when it was made to its end and nothing is left.
func TestJob(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	id, ids := newJob(t, sp, 3)
	held := sp.Claim(t, "w", 3)
	if len(held) != 3 || held[0].Plan != 0 {
		t.Fatalf("claimed %+v", held)
	}
	finish(t, sp, held)
	inState(t, sp, ids[2], statemachine.Archived)
	jobIs(t, sp, id, task.PlanBuilding, 3, 0, endings{statemachine.Succeeded: 3})
	addToJob(t, sp, id, 2)
	ready(t, sp, id)
	jobIs(t, sp, id, task.PlanReady, 5, 2, endings{statemachine.Succeeded: 3})
	if of := sp.Raw.HGet(t.Context(), sp.Key("task:5"), "plan").Val(); of != fmt.Sprintf("j%d", id) {
		t.Errorf("task 5 says %q", of)
	}
	finish(t, sp, sp.Claim(t, "w", 2))
	jobIs(t, sp, id, task.PlanCompleted, 5, 0, endings{statemachine.Succeeded: 5})
	listed, err := sp.Store.PlanTasks(t.Context(), id, 0, 10)
	if err != nil || !slices.Equal(listed, []int64{1, 2, 3, 4, 5}) {
		t.Errorf("it lists %v, %v", listed, err)
	}
	if _, err := sp.Store.Open(t.Context(), tasks.OpenRequest{Key: "late", Specs: []task.Definition{storetest.Spec()}, Plan: id, Job: true}); !errors.Is(err, task.ErrPlanState) {
		t.Errorf("a task for a job that is over: %v", err)
	}
}

// A job with a failure has failed; a retry of a task of it takes the place of that one, and so on until it is completed. What
// succeeded may be run again too.
func TestRetryInAJob(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	id, ids := newJob(t, sp, 2)
	ready(t, sp, id)
	finish(t, sp, sp.Claim(t, "w", 2), ids[0])
	settleAll(t, sp)
	jobIs(t, sp, id, task.PlanFailed, 2, 0, endings{statemachine.Succeeded: 1, statemachine.Failed: 1})
	for round, old := range ids {
		again := storetest.Spec(func(d *task.Definition) { storetest.Set(d, "archive", task.ArchiveAtOnce) })
		again.RetryOf = old
		opened, err := sp.Store.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{again}, Plan: id})
		if err != nil {
			t.Fatal(err)
		}
		jobIs(t, sp, id, task.PlanReady, 2, 1, endings{statemachine.Succeeded: 1})
		inState(t, sp, opened[0], statemachine.Open)
		finish(t, sp, sp.Claim(t, "w", 1))
		inState(t, sp, opened[0], statemachine.Archived)
		jobIs(t, sp, id, task.PlanCompleted, 2, 0, endings{statemachine.Succeeded: 2})
		if round == 1 && sp.Raw.HGet(t.Context(), sp.Key(fmt.Sprint("task:", opened[0])), "plan").Val() != fmt.Sprintf("j%d", id) {
			t.Error("the retry is not of the job")
		}
	}
}

// A job has the first tasks that did not end as they should, which its waiters name: each of them costs what is noted, the later ones and
// those that succeed nothing. A retry takes its task out.
func TestFailuresOfAJob(t *testing.T) {
	t.Parallel()
	sp := storetest.On(t, redistest.Start(t))
	id, ids := newJob(t, sp, 12)
	ready(t, sp, id)
	noted := func() (calls int) {
		for name, n := range commandsOf(t, sp) {
			if name == "hget" || name == "hset" || name == "hmget" {
				calls += n
			}
		}
		return calls
	}
	var costs []int
	for _, failed := range [][]int64{ids[:2], ids[2:4], ids[4:6], ids[6:8], ids[8:10]} { // two at a time, of which five are noted
		finish(t, sp, sp.Claim(t, "w", 2), failed...)
		before := noted()
		settleAll(t, sp)
		costs = append(costs, noted()-before)
	}
	p, err := sp.Store.Plan(t.Context(), id)
	if err != nil || !slices.Equal(p.Failures, ids[:5]) || p.Ended[statemachine.Failed] != 10 {
		t.Errorf("%+v, %v", p, err)
	}
	if costs[0] != costs[1] || costs[1] != costs[2] || costs[2] != costs[3]+2 || costs[3] != costs[4] {
		t.Errorf("the failures cost %v commands: want two less from the fourth call on", costs)
	}
	again := storetest.Spec()
	again.RetryOf = ids[1]
	if _, err := sp.Store.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{again}, Plan: id}); err != nil {
		t.Fatal(err)
	}
	if p, err = sp.Store.Plan(t.Context(), id); err != nil || !slices.Equal(p.Failures, []int64{ids[0], ids[2], ids[3], ids[4]}) {
		t.Errorf("after the retry: %v, %v", p.Failures, err)
	}
}

// What a job counts is corrected only if the job is as it was when its tasks were read, and it is over then if nothing is left.
func TestRetally(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(*testing.T, *storetest.Space)
		done      bool
		state     task.PlanState
	}{
		"nothing": {func(*testing.T, *storetest.Space) {}, true, task.PlanCompleted},
		"a task":  {func(t *testing.T, sp *storetest.Space) { sp.Raw.RPush(t.Context(), sp.Key("plan_tasks:1"), 3) }, false, task.PlanReady},
		"an end":  {func(t *testing.T, sp *storetest.Space) { sp.Raw.HIncrBy(t.Context(), sp.Key("plan:1"), "left", 1) }, false, task.PlanReady},
		"a purge": {func(t *testing.T, sp *storetest.Space) { sp.Raw.HIncrBy(t.Context(), sp.Key("plan:1"), "purged", 1) }, false, task.PlanReady},
		"a hold": {func(t *testing.T, sp *storetest.Space) {
			_, err := sp.Store.SteerPlan(t.Context(), 1, task.PlanHeld, "me")
			if err != nil {
				t.Error(err)
			}
		}, false, task.PlanHeld},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			jobMiscounted(t, sp)
			call := retallyCall(t, sp.Store)
			c.meanwhile(t, sp)
			done, err := call()
			p, planErr := sp.Store.Plan(t.Context(), 1)
			if err != nil || planErr != nil || done != c.done || p.State != c.state || (p.Left == 0) != c.done {
				t.Errorf("%v, %v; %+v, %v", done, err, p, planErr)
			}
		})
	}
}

// settleAll settles what was executed, as a server does.
func settleAll(t *testing.T, sp *storetest.Space) {
	t.Helper()
	benchmarkMove(t, sp, statemachine.Executed, statemachine.Server, statemachine.Settle, 100)
}

// A job goes if all its tasks were there before, by their keys.
func TestJobWithoutTasks(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	key := func(d *task.Definition) { storetest.Set(d, "key", "once") }
	sp.Open(t, storetest.Spec(key))
	id, err := sp.Store.NewPlan(t.Context(), task.PlanSpec{Job: true, RequestKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	if ids := addToJob(t, sp, id, 1, key); !slices.Equal(ids, []int64{1}) {
		t.Fatalf("opened %v", ids)
	}
	ready(t, sp, id)
	if _, err := sp.Store.Plan(t.Context(), id); !errors.Is(err, task.ErrNoPlan) {
		t.Errorf("there is a job: %v", err)
	}
	if ids, err := sp.Store.PlanIDs(t.Context(), 0, 10); err != nil || len(ids) > 0 {
		t.Errorf("listed: %v, %v", ids, err)
	}
}

// Tasks with keys are of the job too, and held ones stay held.
func TestMarkedTasksOfAJob(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	id, ids := newJob(t, sp, 1, func(d *task.Definition) { storetest.Set(d, "key", "a") })
	more := addToJob(t, sp, id, 1, func(d *task.Definition) { storetest.Set(d, "key", "b", "hold", "later") })
	inState(t, sp, ids[0], statemachine.Open)
	inState(t, sp, more[0], statemachine.Blocked)
	ready(t, sp, id)
	finish(t, sp, sp.Claim(t, "w", 2))
	jobIs(t, sp, id, task.PlanReady, 2, 1, endings{statemachine.Succeeded: 1})
}

// Tasks of a job need nothing.
func TestNeedsInAJob(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	id, ids := newJob(t, sp, 1)
	needy := storetest.Spec()
	needy.Needs = []task.Need{{Task: ids[0]}}
	var need *tasks.NeedError
	_, err := sp.Store.Open(t.Context(), tasks.OpenRequest{Key: "k", Specs: []task.Definition{needy}, Plan: id})
	if !errors.As(err, &need) || need.ID != ids[0] {
		t.Errorf("a need in a job: %v", err)
	}
	_, err = sp.Store.Open(t.Context(), tasks.OpenRequest{Key: "l", Specs: []task.Definition{storetest.Spec()}, Plan: 7, Job: true})
	if !errors.Is(err, task.ErrNoPlan) {
		t.Errorf("no such job: %v", err)
	}
}

// Beside what tasks of no plan cost, those of a job cost two commands for each call that opens some, and one for each call that ends
// some.
func TestCommandsOfAJob(t *testing.T) {
	t.Parallel()
	const n = 50
	count := func(sp *storetest.Space, do func()) int {
		before, n := commandsOf(t, sp), 0
		do()
		for name, calls := range commandsOf(t, sp) {
			if name != "info" {
				n += calls - before[name]
			}
		}
		return n
	}
	costs := map[bool][]int{}
	for _, inJob := range []bool{false, true} {
		sp := storetest.On(t, redistest.Start(t))
		id := task.PlanID(0)
		addToJob(t, sp, 0, 1) // what is there from the first task on
		finish(t, sp, sp.Claim(t, "w", 1))
		if inJob {
			id, _ = newJob(t, sp, 1)
			finish(t, sp, sp.Claim(t, "w", 1))
		}
		var held []tasks.Claimed
		costs[inJob] = []int{
			count(sp, func() { addToJob(t, sp, id, n+1) }), count(sp, func() { held = sp.Claim(t, "w", n) }), count(sp, func() { finish(t, sp, held) }),
		}
	}
	for i, more := range []int{2 + 3, 0, 1} { // to open, it also looks at the plan, and whether that and its list have these types
		if got := costs[true][i] - costs[false][i]; got != more {
			t.Errorf("step %d of %d tasks costs %d commands more in a job (%v), want %d", i, n, got, costs, more)
		}
	}
}

// BenchmarkJob is the short path of tasks, with and without a job: opened in calls of 1000, claimed and reported to their end in calls
// of 1 and of 100.
func BenchmarkJob(b *testing.B) {
	for _, size := range []int{1, 100} {
		for _, name := range []string{"plain", "job"} {
			b.Run(fmt.Sprintf("%d/%s", size, name), func(b *testing.B) {
				sp := storetest.New(b)
				id := task.PlanID(0)
				if name == "job" {
					id, _ = newJob(b, sp, 1)
				}
				timed(b, sp, func() {
					for left := b.N; left > 0; left -= 1000 {
						addToJob(b, sp, id, min(left, 1000))
					}
					for left := b.N; left > 0; left -= size {
						finish(b, sp, sp.Claim(b, "w", min(left, size)))
					}
				})
			})
		}
	}
}

// serveJobs moves what servers have to move of plans, until nothing is left.
func serveJobs(t *testing.T, sp *storetest.Space) {
	t.Helper()
	for storetest.AdvancePlans(t, sp.Store, 100, true) {
	}
}

func statesOf(t *testing.T, sp *storetest.Space) map[statemachine.State]int64 {
	t.Helper()
	counts, err := sp.Store.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := endings{}
	for state, n := range counts {
		if n > 0 {
			found[state] = n
		}
	}
	return found
}

func sameStates(t *testing.T, sp *storetest.Space, want endings) {
	t.Helper()
	if diff := cmp.Diff(want, statesOf(t, sp)); diff != "" {
		t.Errorf("states:\n%s", diff)
	}
}

// addGated adds tasks to a job whose tasks servers open.
func addGated(t *testing.T, sp *storetest.Space, spec task.PlanSpec, n int) task.PlanID {
	t.Helper()
	before, err := sp.Store.PlanIDs(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	spec.Job, spec.RequestKey = true, fmt.Sprint("job ", len(before)+1) // the same in each namespace
	id, err := sp.Store.NewPlan(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	specs := make([]task.Definition, n)
	for i := range specs {
		specs[i] = storetest.Spec()
	}
	if _, err := sp.Store.Open(t.Context(), tasks.OpenRequest{Key: spec.RequestKey, Specs: specs, Plan: id}); err != nil {
		t.Fatal(err)
	}
	return id
}

// A window bounds how many tasks of a job are open or run, however the others end.
func TestWindowOfAJob(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	id := addGated(t, sp, task.PlanSpec{Window: 2}, 7)
	serveJobs(t, sp)
	sameStates(t, sp, endings{statemachine.Blocked: 7})
	ready(t, sp, id)
	serveJobs(t, sp)
	sameStates(t, sp, endings{statemachine.Blocked: 5, statemachine.Open: 2})
	held := sp.Claim(t, "w", 2)
	serveJobs(t, sp)
	sameStates(t, sp, endings{statemachine.Blocked: 5, statemachine.Running: 2})
	if due, err := sp.Store.DueWork(t.Context(), 0, 10); err != nil || len(due) > 0 {
		t.Errorf("servers have to do %+v, %v", due, err)
	}
	if err := sp.Store.Requeue(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	if due, err := sp.Store.DueWork(t.Context(), 0, 10); err != nil || len(due) > 0 {
		t.Errorf("a full window is work for servers: %+v, %v", due, err)
	}
	sp.Report(t, &held[0], "", "")
	settleAll(t, sp)
	serveJobs(t, sp)
	sameStates(t, sp, endings{statemachine.Blocked: 4, statemachine.Open: 1, statemachine.Running: 1, statemachine.Succeeded: 1})
	sp.Report(t, &held[1], "", "bad")
	settleAll(t, sp)
	serveJobs(t, sp)
	sameStates(t, sp, endings{statemachine.Blocked: 3, statemachine.Open: 2, statemachine.Succeeded: 1, statemachine.Failed: 1})
	for range 5 {
		for _, c := range sp.Claim(t, "w", 5) {
			sp.Report(t, &c, "", "")
		}
		settleAll(t, sp)
		serveJobs(t, sp)
	}
	jobIs(t, sp, id, task.PlanFailed, 7, 0, endings{statemachine.Succeeded: 6, statemachine.Failed: 1})
}

// A job after others begins when the last of them is over, and is cancelled by one that ends in another way than it waits for.
func TestJobAfterOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		on    task.When
		fails bool
		runs  bool
	}{
		"success, met": {task.NeedsSuccess, false, true}, "success, not met": {"", true, false}, "any": {task.NeedsAny, true, true},
		"failure, met": {task.NeedsFailure, true, true}, "failure, not met": {task.NeedsFailure, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			first, ids := newJob(t, sp, 1)
			second, _ := newJob(t, sp, 1)
			third := addGated(t, sp, task.PlanSpec{After: []task.PlanNeed{{Plan: first, On: c.on}, {Plan: second, On: task.NeedsAny}}}, 2)
			fourth := addGated(t, sp, task.PlanSpec{After: []task.PlanNeed{{Plan: third}}}, 1)
			for _, id := range []task.PlanID{fourth, third, second, first} {
				ready(t, sp, id)
			}
			jobIs(t, sp, third, task.PlanHeld, 2, 2, endings{})
			held := sp.Claim(t, "w", 2)
			finish(t, sp, held[1:])
			serveJobs(t, sp)
			sameStates(t, sp, endings{statemachine.Archived: 1, statemachine.Running: 1, statemachine.Blocked: 3})
			if c.fails {
				finish(t, sp, held[:1], ids[0])
				settleAll(t, sp)
			} else {
				finish(t, sp, held[:1])
			}
			serveJobs(t, sp)
			if !c.runs {
				jobIs(t, sp, third, task.PlanCancelled, 2, 0, endings{statemachine.Cancelled: 2})
				jobIs(t, sp, fourth, task.PlanCancelled, 1, 0, endings{statemachine.Cancelled: 1})
				return
			}
			sameStates(t, sp, endings{statemachine.Archived: 2, statemachine.Open: 2, statemachine.Blocked: 1})
			for _, n := range []int{2, 1} {
				for _, one := range sp.Claim(t, "w", n) {
					sp.Report(t, &one, "", "")
				}
				settleAll(t, sp)
				serveJobs(t, sp)
			}
			jobIs(t, sp, third, task.PlanCompleted, 2, 0, endings{statemachine.Succeeded: 2})
			jobIs(t, sp, fourth, task.PlanCompleted, 1, 0, endings{statemachine.Succeeded: 1})
			late := addGated(t, sp, task.PlanSpec{After: []task.PlanNeed{{Plan: first, On: c.on}}}, 1)
			ready(t, sp, late)
			serveJobs(t, sp)
			jobIs(t, sp, late, task.PlanReady, 1, 1, endings{})
		})
	}
}

// What only a job has is refused elsewhere.
func TestJobSpec(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	for field, spec := range map[string]task.PlanSpec{
		"window": {Window: 1}, "after": {After: []task.PlanNeed{{Plan: 1}}}, "after ": {Job: true, After: []task.PlanNeed{{Plan: 1, On: "soon"}}},
		"window ": {Job: true, Window: -1},
	} {
		spec.RequestKey = "k"
		var fe *statemachine.FieldError
		if _, err := sp.Store.NewPlan(t.Context(), spec); !errors.As(err, &fe) || fe.Field+" " != field && fe.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
