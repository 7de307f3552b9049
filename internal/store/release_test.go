package store_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// waits are how many tasks some others still wait for.
func waits(t *testing.T, sp *storetest.Space, ids ...int64) (all []string) {
	t.Helper()
	for _, id := range ids {
		all = append(all, sp.Task(t, id).Fields["waits"])
	}
	return all
}

func releasePage(t *testing.T, sp *storetest.Space, page, want int, ids ...int64) {
	t.Helper()
	if done, err := sp.Store.NotifyDependants(t.Context(), page, ids...); err != nil || done != want {
		t.Fatalf("all were told of %d of %v, error %v; want %d", done, ids, err, want)
	}
}

// Tasks of several plans are told of in one call, page by page, and each dependant once of each end.
func TestReleaseSeveral(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	first, second := newPlan(t, sp, ""), newPlan(t, sp, task.FailureHolds)
	ids := planned(t, sp, first, nil, nil, []task.Need{at(0)}, []task.Need{at(0), at(1)}, []task.Need{at(0), at(1), at(2)})
	more := planned(t, sp, second, nil, []task.Need{at(0)}, nil)
	steer(t, sp, first, task.PlanReady)
	steer(t, sp, second, task.PlanReady)
	drainAll(t, sp)
	c := newCrew(sp)
	for _, id := range ids[:2] {
		c.end(t, id, "", "")
	}
	c.end(t, more[0], "", "no")
	ended := []int64{ids[0], ids[1], more[0]}
	releasePage(t, sp, 2, 0, ended...)
	if got := waits(t, sp, ids[2:]...); !cmp.Equal(got, []string{"0", "1", "3"}) {
		t.Errorf("after the first page they wait for %v", got)
	}
	releasePage(t, sp, 2, 1, ended...)
	if got := waits(t, sp, ids[2:]...); !cmp.Equal(got, []string{"0", "0", "2"}) {
		t.Errorf("after the second page they wait for %v", got)
	}
	releasePage(t, sp, 9, 3, ended...)
	releasePage(t, sp, 9, 3, ended...) // nothing is left
	if got := waits(t, sp, append(ids[2:], more[1])...); !cmp.Equal(got, []string{"0", "0", "1", "1"}) {
		t.Errorf("at the end they wait for %v", got)
	}
	if freed, err := sp.Store.FreedIDs(t.Context(), first, 0, 9); err != nil || !cmp.Equal(freed, ids[2:4]) {
		t.Errorf("to be moved: %v, error %v, want %v", freed, err, ids[2:4])
	}
	if p, err := sp.Store.Plan(t.Context(), second); err != nil || p.State != task.PlanHeld || p.HeldBy != "6" {
		t.Errorf("plan %+v, error %v", p, err)
	}
	drainAll(t, sp)
	checkStates(t, sp, ids[2:], statemachine.Open, statemachine.Open, statemachine.Blocked)
}

// Dependants that somebody has removed or damaged neither come to be nor keep the others waiting.
func TestReleaseDamaged(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	need := []task.Need{at(0)}
	ids := planned(t, sp, newPlan(t, sp, ""), nil, need, need, need, need, need, []task.Need{{On: task.NeedsFailure}})
	steer(t, sp, 1, task.PlanReady)
	drainAll(t, sp)
	newCrew(sp).end(t, ids[0], "", "")
	key := func(i int) string { return sp.Key("task:" + "1234567"[i:i+1]) }
	sp.Raw.Del(t.Context(), key(1), key(2), key(6))
	sp.Raw.Set(t.Context(), key(2), "a text", 0)
	sp.Raw.HSet(t.Context(), key(3), "waits", "many")
	sp.Raw.HSet(t.Context(), key(4), "waits", "0")
	releasePage(t, sp, 9, 1, ids[0])
	if n := sp.Raw.Exists(t.Context(), key(1), key(6)).Val(); n != 0 || sp.Raw.Get(t.Context(), key(2)).Val() != "a text" {
		t.Errorf("%d tasks have come to be, or another key was changed", n)
	}
	if got := waits(t, sp, ids[3:6]...); !cmp.Equal(got, []string{"0", "0", "0"}) {
		t.Errorf("they wait for %v", got)
	}
	drainAll(t, sp)
	checkStates(t, sp, ids[3:6], statemachine.Open, statemachine.Open, statemachine.Open)
}

// One end can doom a task and be the last that it waits for; the first cause stays.
func TestReleaseDoomed(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	ids := planned(t, sp, newPlan(t, sp, ""), nil, nil, []task.Need{at(0), at(1)})
	steer(t, sp, 1, task.PlanReady)
	drainAll(t, sp)
	c := newCrew(sp)
	c.end(t, ids[0], "", "no")
	c.end(t, ids[1], "", "no")
	releasePage(t, sp, 9, 2, ids[0], ids[1])
	if got := sp.Task(t, ids[2]).Fields; got["doomed_by"] != "1" || got["waits"] != "0" {
		t.Errorf("doomed by %q, waits for %q", got["doomed_by"], got["waits"])
	}
	drainAll(t, sp)
	checkStates(t, sp, ids[2:], statemachine.Cancelled)
}

func TestReleaseLimits(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	if _, err := sp.Store.NotifyDependants(t.Context(), 0, 1); err == nil {
		t.Error("a page of nobody")
	}
	if _, err := sp.Store.NotifyDependants(t.Context(), 1, make([]int64, plans.MaxNotified+1)...); err == nil {
		t.Error("too many tasks")
	}
}

// A result is the same whether it is read plainly, or by the script that follows retries.
func TestResultsEitherWay(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	ids := planned(t, sp, newPlan(t, sp, task.FailureContinues), nil, nil, nil, nil, nil, nil)
	steer(t, sp, 1, task.PlanReady)
	drainAll(t, sp)
	c := newCrew(sp)
	for _, id := range ids[:5] {
		c.end(t, id, "two\nlines\n\n", "")
	}
	c.end(t, ids[5], "bad", "no")
	sp.Raw.HSet(t.Context(), sp.Key("task:2"), "0:result", "said\n", "0:output_bytes", 99)
	sp.Raw.HSet(t.Context(), sp.Key("task:3"), "0:output_bytes", 99)
	sp.Raw.HSet(t.Context(), sp.Key("task:4"), "0:result", "")
	must(t, sp, ids[4], statemachine.Manager, statemachine.Archive)
	good := task.Result{End: statemachine.Succeeded, Text: "two\nlines\n"}
	want := []task.Result{good, good, good, good, good, {End: statemachine.Failed, Text: "bad"}}
	want[1].Text, want[3].Text, want[2].Cut = "said\n", "", true
	all, err := sp.Store.Results(t.Context(), ids) // the last one takes the script
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		want[i].Task = id
		one, err := sp.Store.Results(t.Context(), []int64{id})
		if err != nil || one[0] != want[i] || all[i] != want[i] {
			t.Errorf("task %d: %+v, %+v, error %v; want %+v", id, one, all[i], err, want[i])
		}
	}
	sp.Raw.Set(t.Context(), sp.Key("task:1"), "a text", 0)
	if got, err := sp.Store.Results(t.Context(), []int64{1, 99}); err != nil || got[0].End != "" || got[1].End != "" {
		t.Errorf("where no tasks are: %+v, %v", got, err)
	}
}

// Any number of moves is made in calls that do not take long; what cannot be called keeps those before it.
func TestApplyAll(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	var commits []tasks.Commit
	for range 90 {
		id := sp.Open(t, storetest.Spec())[0]
		m, err := statemachine.Decide(&sp.Task(t, id).Task, statemachine.Occurrence{Event: statemachine.Cancel, Actor: statemachine.Manager}, noon)
		if err != nil {
			t.Fatal(err)
		}
		commits = append(commits, tasks.Commit{Move: m, Writer: "m"})
	}
	commits[85].Fields = make([]string, tasks.MaxFields+2)
	out, err := sp.Store.ApplyAll(t.Context(), commits...)
	if err == nil || !strings.Contains(err.Error(), "task 86") || len(out) != 80 || out[79].Result != statemachine.Moved {
		t.Fatalf("%d outcomes, error %v", len(out), err)
	}
	commits[85].Fields = nil
	if out, err = sp.Store.ApplyAll(t.Context(), commits...); err != nil || len(out) != 90 || out[79].Result != statemachine.Repeated || out[89].Result != statemachine.Moved {
		t.Errorf("again: %d outcomes, error %v", len(out), err)
	}
}
