package growth_test

import (
	"fmt"
	"testing"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/growth"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// scene is a plan whose steps are opened while it runs, and who runs its tasks.
type scene struct {
	*storetest.Space

	t    *testing.T
	plan task.PlanID
	held map[int64]tasks.Claimed
}

// template is a step for each line of list, and a report that needs them all, and list.
func template() *growth.Template {
	tk := spec("count")
	storetest.Set(&tk, "input", "n "+growth.Item)
	return &growth.Template{Steps: []growth.Step{
		{Name: "count", Lines: "list", Tasks: []task.Definition{tk}},
		{Name: "report", Needs: []task.StepNeed{{Step: "count"}, {Step: "list"}}, Tasks: []task.Definition{spec("report")}},
	}}
}

func spec(step string) task.Definition {
	s := storetest.Spec()
	storetest.Set(&s, "step", step)
	return s
}

// begin makes a plan that is ready: a task for each name, and the steps.
func begin(t *testing.T, on task.OnFailure, tpl *growth.Template, names ...string) *scene {
	t.Helper()
	s := &scene{Space: storetest.New(t), t: t, held: map[int64]tasks.Claimed{}}
	s.begin(on, tpl, names...)
	return s
}

func (s *scene) begin(on task.OnFailure, tpl *growth.Template, names ...string) {
	s.t.Helper()
	var err error
	if s.plan, err = s.Store.NewPlan(s.t.Context(), task.PlanSpec{RequestKey: "plan", OnFailure: on}); err != nil {
		s.t.Fatal(err)
	}
	tpl.Known = map[string][]int64{}
	for _, name := range names {
		ids, err := s.Store.Open(s.t.Context(), tasks.OpenRequest{Key: "open " + name, Plan: s.plan, Specs: []task.Definition{spec(name)}})
		if err != nil {
			s.t.Fatal(err)
		}
		tpl.Known[name] = ids
	}
	text, err := tpl.Text()
	if err == nil {
		err = s.Store.KeepGrowth(s.t.Context(), s.plan, text, len(tpl.Steps), tpl.KnownSources())
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.steer(task.PlanReady)
	s.drain()
}

func (s *scene) steer(to task.PlanState) {
	s.t.Helper()
	if _, err := s.Store.SteerPlan(s.t.Context(), s.plan, to, "me"); err != nil {
		s.t.Fatal(err)
	}
}

// drain does what servers do for plans, until nothing is left to do.
func (s *scene) drain() {
	s.t.Helper()
	for storetest.AdvancePlans(s.t, s.Store, 3, true) {
	}
}

// end runs an open task to its end, and lets servers do what follows.
func (s *scene) end(id int64, output, errText string) {
	s.t.Helper()
	s.finish(id, output, errText)
	s.drain()
}

// finish runs an open task to its end.
func (s *scene) finish(id int64, output, errText string) {
	s.t.Helper()
	for _, c := range s.Claim(s.t, "w", 1000) {
		s.held[c.Task.ID] = c
	}
	tk, ok := s.held[id]
	if !ok {
		s.t.Fatalf("task %d cannot be claimed: it is %s", id, s.Task(s.t, id).State)
	}
	delete(s.held, id)
	if out := s.Report(s.t, &tk, output, errText); out.Err != nil {
		s.t.Fatal(out.Err)
	}
	seen := s.Task(s.t, id)
	now, err := s.Store.Now(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	m, err := statemachine.Decide(&seen.Task, statemachine.Occurrence{Event: statemachine.Settle, Actor: statemachine.Server}, now)
	if err != nil {
		s.t.Fatal(err)
	}
	if out, err := s.Store.Apply(s.t.Context(), tasks.Commit{Move: m, Writer: "s", Bucket: seen.Bucket}); err != nil || out[0].Err != nil {
		s.t.Fatalf("%+v, error %v", out, err)
	}
}

// state wants the plan to be in a state, with so many tasks and so many steps to be opened.
func (s *scene) state(state task.PlanState, total, growing int64) *task.Plan {
	s.t.Helper()
	p, err := s.Store.Plan(s.t.Context(), s.plan)
	if err != nil || p.State != state || p.Total != total || p.Growing != growing {
		s.t.Fatalf("plan %+v, error %v; want %s with %d tasks, %d steps to be opened", p, err, state, total, growing)
	}
	return p
}

// tasks are the steps and inputs of all tasks from an id on, with what they need.
func (s *scene) tasks(from int64) (found []string) {
	s.t.Helper()
	ids, err := s.Store.PlanTasks(s.t.Context(), s.plan, 0, 100_000)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, id := range ids {
		if id >= from {
			f := s.Task(s.t, id).Fields
			found = append(found, fmt.Sprintf("%d %s (%s) <- %s", id, f["step"], f["input"], f["needs"]))
		}
	}
	return found
}

// retry opens a task again.
func (s *scene) retry(id int64) int64 {
	s.t.Helper()
	again := spec("again")
	again.RetryOf, again.Needs = id, task.ParseNeeds(s.Task(s.t, id).Fields["needs"])
	ids, err := s.Store.Open(s.t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Plan: s.plan, Specs: []task.Definition{again}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.drain()
	return ids[0]
}

// status are the fates of the steps, with what is said of them.
func (s *scene) status() (found []string) {
	s.t.Helper()
	v, err := growth.Read(s.t.Context(), s.Store, s.plan)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range v.Status {
		found = append(found, fmt.Sprintf("%s %s: %s", v.Steps[i].Name, v.Status[i].Fate, v.Text(i)))
	}
	return found
}
