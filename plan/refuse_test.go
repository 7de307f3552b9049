package plan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A plan keeps what New was given, so Load refuses OnFailure.
func TestLoadRefusesOnFailure(t *testing.T) {
	t.Parallel()
	s := newSite(t, 0, nil)
	p := newPlan(t, s)
	_, err := plan.Load(t.Context(), s.Manager, p.ID(), plan.OnFailure(task.FailureHolds))
	if fe, ok := errors.AsType[*statemachine.FieldError](err); !ok || fe.Field != "on_failure" {
		t.Error(err)
	}
	_, err = plan.Load(t.Context(), s.Manager, p.ID(), plan.WithRequestKey("k"))
	must(t, err)
}

// P11: what a task cannot need is told by Send and Ready with the task, and nothing of
// the portion is opened. Handles are there before they can be needed: no cycle can
// be written, but by ids of the future.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, 0, nil)
	other := newPlan(t, s)
	foreign := other.Add(spec("echo", ""))
	must(t, other.Send(t.Context()))
	var none *plan.Task
	for name, c := range map[string]struct {
		dep   plan.Dep
		place int // of the handle that cannot be; what an id means, the site knows
		want  string
	}{
		"nil":             {nil, 2, "task 2 of the plan (p), dependency 2: it is nil"},
		"no task":         {none, 2, "task 2 of the plan (p), dependency 2: it is nil"},
		"nothing any":     {plan.Any(nil), 2, "task 2 of the plan (p), dependency 2: it is nil"},
		"foreign":         {foreign, 2, "dependency 2: it is a handle of plan 1"},
		"foreign failure": {plan.Failure(foreign), 2, "dependency 2: it is a handle of plan 1"},
		"negative":        {plan.ID(-1), 2, "-1 is not the id of a task"},
		"foreign id":      {plan.ID(foreign.ID()), 0, "task 2 of the plan (p): task 1 belongs to another plan"},
		"itself":          {plan.ID(3), 0, "task 2 of the plan (p): there is no task 3"},
	} {
		p := newPlan(t, s)
		first := p.Add(spec("p", "1"))
		p.Add(spec("p", "2"), first, c.dep)
		for range 2 {
			err := p.Ready(t.Context())
			var refused *plan.TaskError
			if !errors.As(err, &refused) || refused.Index != 1 || refused.Place != c.place || !strings.Contains(err.Error(), c.want) ||
				errors.Is(refused.Err, plan.ErrForeign) != (c.place > 0) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
		if status, err := p.Status(t.Context()); err != nil || status.Total != 0 || status.State != task.PlanBuilding || first.ID() != 0 {
			t.Errorf("%s: %+v, %v", name, status, err)
		}
	}
}

// What is wrong with a spec comes with its task, also in a later portion.
func TestRefusedSpec(t *testing.T) {
	t.Parallel()
	s := newSite(t, 0, nil)
	for field, spoil := range map[string]func(*task.Spec){
		"program": func(spec *task.Spec) { spec.Program = "a/b" },
		"hold":    func(spec *task.Spec) { spec.Hold = "later" },
		"args":    func(spec *task.Spec) { spec.Args = "jars" },
	} {
		p := newPlan(t, s)
		first := p.Add(spec("echo", ""))
		must(t, p.Send(t.Context()))
		for range 150 {
			p.Add(spec("echo", ""), first)
		}
		bad := spec("bad", "")
		spoil(&bad)
		p.Add(bad, first)
		err := p.Send(t.Context())
		var task *plan.TaskError
		var wrong *statemachine.FieldError
		if !errors.As(err, &task) || !errors.As(err, &wrong) || task.Index != 151 || task.Program != bad.Program || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	p := newPlan(t, s)
	first := p.Add(spec("echo", ""))
	p.Add(spec("twice", ""), first, plan.Any(first))
	if err := p.Send(t.Context()); err == nil || !strings.Contains(err.Error(), "task 2 of the plan (twice): field needs") {
		t.Error(err)
	}
	p = newPlan(t, s)
	p.Add(task.Spec{Program: "echo", Needs: []task.Need{{Task: 1}}})
	if err := p.Send(t.Context()); !errors.Is(err, plan.ErrForeign) {
		t.Error(err)
	}
}

// A task that cannot be is said when it is sent, in its place; a result is read by
// whatever names a task of the plan.
func TestRefuse(t *testing.T) {
	t.Parallel()
	s := newSite(t, 1, nil)
	p := newPlan(t, s)
	first := p.Add(spec("echo", "a"))
	p.Refuse(spec("odd", ""), errNone)
	p.Refuse(spec("odder", ""), nil)
	var refused *plan.TaskError
	if err := p.Ready(t.Context()); !errors.As(err, &refused) || refused.Index != 1 || refused.Program != "odd" || !errors.Is(err, errNone) {
		t.Error(err)
	}
	if _, err := p.Result(t.Context(), first); !errors.Is(err, plan.ErrNotSent) {
		t.Error(err)
	}
	p = newPlan(t, s)
	first = p.Add(spec("echo", "a"))
	checkEnd(t, run(t, p), task.PlanCompleted, 1, 0, 0, 0)
	for _, of := range []plan.Dep{first, plan.ID(first.ID()), plan.Any(first)} {
		checkResult(t, p, of, "a")
	}
	for _, of := range []plan.Dep{nil, plan.ID(0), plan.Any(nil)} {
		if _, err := p.Result(t.Context(), of); !errors.Is(err, plan.ErrForeign) {
			t.Error(err)
		}
	}
}

var errNone = errors.New("no such thing")
