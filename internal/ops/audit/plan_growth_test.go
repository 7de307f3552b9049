package audit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/growth"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/task"
)

// grownWorld has a plan that runs: task 1, whose result has 150 lines, and tasks 2 to 101 for the first hundred; a step comes after that.
// Plan 2 waits for the lines of task 102.
func grownWorld(t *testing.T) (ns string, s *store.Store) {
	t.Helper()
	ns = redistest.Namespace(t)
	s = worktest.Open(t, ns)
	growing(t, s, "grows", "lines")
	for {
		worktest.Drain(t, s, play)
		if task, err := s.Task(t.Context(), 1); err == nil && task.End().IsOutcome() {
			break
		}
		doPlans(t, s)
	}
	if opened, done, err := growth.Pass(t.Context(), s, 1, 1); err != nil || done || opened != 100 {
		t.Fatalf("opened %d, done %v, error %v", opened, done, err)
	}
	growing(t, s, "waits", "ok")
	if done, err := s.Grown(t.Context(), 2, "1", "", nil); err != nil || !done {
		t.Fatalf("done %v, error %v", done, err)
	}
	return ns, s
}

// growing makes a plan of one task, and two steps.
func growing(t *testing.T, s *store.Store, name, input string) {
	t.Helper()
	plan, ids := planned(t, s, name, "", false, storetest.Define("input", input, "step", "list"))
	spec := storetest.Define("program", "p", "source", "s", "timeout", "60")
	after := spec
	storetest.Set(&after, "step", "after")
	tpl := &growth.Template{Known: map[string][]int64{"list": ids}, Steps: []growth.Step{
		{Name: "each", Lines: "list", Tasks: []task.Definition{spec}},
		{Name: "after", Tasks: []task.Definition{after}, Needs: []task.StepNeed{{Step: "each"}}},
		{Name: "last", Lines: "after", Tasks: []task.Definition{spec}},
	}}
	text, err := tpl.Text()
	if err == nil {
		err = s.KeepGrowth(t.Context(), plan, text, len(tpl.Steps), ids)
	}
	if err == nil {
		_, err = s.SteerPlan(t.Context(), plan, task.PlanReady, "")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestSoundGrowth: nothing is found, in the middle of a step or not.
func TestSoundGrowth(t *testing.T) {
	t.Parallel()
	_, s := grownWorld(t)
	sound := func(what string) {
		t.Helper()
		if r, err := verify(t, s); err != nil || !r.OK() || len(r.Notes) > 0 || r.Plans != 2 {
			t.Fatalf("%s: %+v, %+v, %v, want nothing in 2 plans", what, r.Violations, r.Notes, err)
		}
	}
	sound("in the middle")
	if _, err := s.SteerPlan(t.Context(), 1, task.PlanHeld, "me"); err != nil {
		t.Fatal(err)
	}
	doPlans(t, s)
	sound("held")
	if _, err := s.SteerPlan(t.Context(), 1, task.PlanReady, ""); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		doPlans(t, s)
		sound("opened")
		worktest.Drain(t, s, play)
		sound("ended")
	}
	for plan := range task.PlanID(2) {
		if p, err := s.Plan(t.Context(), plan+1); err != nil || p.State != task.PlanCompleted {
			t.Errorf("%+v, %v", p, err)
		}
	}
}

var growthDamages = []planDamage{
	{"steps gone", 0, "plan 1 is ready, but 3 of its steps are not opened, and are kept nowhere", false, [][]string{{"DEL", "%n:growth:1"}}},
	{"steps left", 0, "plan 2 is ready, but it keeps steps, and all are opened", false, [][]string{{"HDEL", "%n:plan:2", "growing"}}},
	{"completed too early", 0, "plan 2 is completed, but 3 of its steps were not opened", false, [][]string{{"HSET", "%n:plan:2", "state", "completed", "left", "0", "ended", "1"}}},
	{"called off with steps", 0, "plan 2 is cancelled, but 3 of its steps were not opened", false, [][]string{{"HSET", "%n:plan:2", "state", "cancelled"}}},
	{"miscounted", 0, "plan 2: 3 steps are not opened, and it counts 2", false, [][]string{{"HSET", "%n:plan:2", "growing", "2"}}},
	{"not readable", 0, "plan 2: the steps to be opened later cannot be read", false, [][]string{{"HSET", "%n:growth:2", "template", "{"}}},
	{"another's task", 0, "plan 1: step each has opened task 102, which the plan does not list", false, [][]string{{"HSET", "%n:growth:1", "0:tasks", "2-100 102-102"}}},
	{"twice in the record", 0, "plan 1: task 2 stands for step each and for step each", false, [][]string{{"HSET", "%n:growth:1", "0:tasks", "2-101 2-2"}}},
	{"made twice", 0, "plan 1: task 101 is each[100] as well as task 100", false, [][]string{{"HSET", "%n:growth:1", "0:tasks", "2-100"}, {"HSET", "%n:task:100", "step", "each[100]"}}},
	{"nobody looks", 0, "step each of plan 1 is due, and not on the list of the servers", true, [][]string{{"ZREM", "%n:draining", "g1"}}},
}

// TestGrowthDamage: as TestPlanDamage.
func TestGrowthDamage(t *testing.T) {
	t.Parallel()
	for _, d := range growthDamages {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			ns, s := grownWorld(t)
			d.check(t, ns, s)
		})
	}
}

// A plan that was at work while its tasks were read: its steps are looked at once more, by themselves.
func TestStepsOfABusyPlan(t *testing.T) {
	t.Parallel()
	ns, s := grownWorld(t)
	redistest.Shared(t).Do(t, "HSET", ns+":growth:2", "template", "{")
	p := &planAudit{a: newAuditor(s), id: 2, tasks: map[int64]*plans.Planned{}, repeats: map[int64]bool{}, names: map[int64]int64{}}
	if err := p.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.before.Listed-- // as if a task had been added
	if err := p.steps(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := fmt.Sprint(p.a.report.Violations); !strings.Contains(found, "plan 2: the steps to be opened later cannot be read") {
		t.Errorf("found %s", found)
	}
}
