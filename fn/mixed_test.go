package fn_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/tdf-go/tdf/fn"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/task"
)

// The output of a program is an argument, as a text or as what it says in JSON, and the
// result of a function is a word for a program.
func TestPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hosttest.WriteProgram(t, filepath.Join(dir, "run.sh"), "#!/bin/sh\necho \"$@\"\n", 0o755)
	type name string
	describe := fn.New3("describe", func(_ context.Context, a name, b []byte, c int) (string, error) {
		return fmt.Sprintf("%s %s %d", a, b, c), nil
	})
	names := fn.New("names", func(_ context.Context, all []name) (int, error) { return len(fmt.Sprint(all)), nil })
	m := newSite(t, dir, describe, names, inc)
	p := newPlan(t, m)
	say := func(text string, needs ...plan.Dep) *plan.Task {
		return p.Add(task.Spec{Program: "say", Source: "rsync:run.sh", Input: text}, needs...)
	}
	text, number := say("x y"), say("41")
	described := describe.Call(p, fn.Output[name](p, text), fn.Output[[]byte](p, text), fn.Output[int](p, number))
	last := say("so", inc.Call(p, fn.Output[int](p, number)), described)
	all := names.Call(p, fn.All(fn.Output[name](p, text), fn.Result[name](p, described), fn.Output[name](p, number)))
	wrong := inc.Call(p, fn.Output[int](p, text), quick)
	run(t, p, task.PlanFailed)
	checkValue(t, described, "x y x y 41")
	checkValue(t, fn.Output[string](p, last), `so 42 "x y x y 41"`)
	checkValue(t, all, len("[x y x y x y 41 41]"))
	checkRounds(t, m, wrong.ID(), 1, fmt.Sprintf(`function inc, argument 1, the result of task %d: "x y" is no int`, text.ID()))
}

// A function adds calls to its own plan, once, although it is run twice, and the plan
// ends after them.
func TestGrow(t *testing.T) {
	t.Parallel()
	var m *manager.Manager
	var tries atomic.Int64
	grow := fn.New("grow", func(ctx context.Context, n int) ([]int64, error) {
		p, err := fn.Grow(ctx, m)
		if err != nil {
			return nil, err
		}
		fn.Job(ctx).Progress(0.5, "growing")
		mine := fn.Result[[]int64](p, plan.ID(fn.Job(ctx).Task.ID))
		parts := []*fn.Future[int]{inc.Call(p, fn.Value(n)), inc.Call(p, fn.Value(n+1), fn.After(mine))}
		total := sum.Call(p, fn.All(parts...))
		if err := p.Send(ctx); err != nil {
			return nil, err
		}
		if tries.Add(1) == 1 {
			return nil, errors.New("died after it had sent them")
		}
		return []int64{parts[0].ID(), parts[1].ID(), total.ID()}, nil
	}, quick)
	m = newSite(t, t.TempDir(), grow, inc, sum)
	p := newPlan(t, m)
	ids := grow.Call(p, fn.Value(10))
	run(t, p, task.PlanCompleted)
	checkValue(t, ids, []int64{2, 3, 4})
	checkValue(t, fn.Result[int](p, plan.ID(4)), 23)
	if status, err := p.Status(t.Context()); err != nil || status.Total != 4 || tries.Load() != 2 {
		t.Errorf("%+v, %v, %d tries", status, err, tries.Load())
	}
	if _, err := fn.Grow(t.Context(), m); !errors.Is(err, fn.ErrNoJob) {
		t.Error(err)
	}
}

// A function can be run without a plan; it has none to grow then.
func TestWithoutPlan(t *testing.T) {
	t.Parallel()
	var m *manager.Manager
	alone := fn.New("alone", func(ctx context.Context, n int) (int, error) {
		if _, err := fn.Grow(ctx, m); !errors.Is(err, fn.ErrNoJob) {
			return 0, err
		}
		return n, nil
	})
	m = newSite(t, t.TempDir(), alone)
	opened, err := m.Submit(t.Context(), task.Spec{Program: "alone", Argv: []string{"5"}})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = m.Wait(ctx, []int64{opened.ID}, nil)
	must(t, err)
	if got, err := m.Results(t.Context(), []int64{opened.ID}); err != nil || got[0].Text != "5" {
		t.Errorf("%+v, %v", got, err)
	}
}
