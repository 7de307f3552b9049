package fn_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tdf-go/tdf/fn"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

var (
	one  = fn.New0("one", func(context.Context) (int, error) { return 1, nil })
	inc  = fn.New("inc", func(_ context.Context, n int) (int, error) { return n + 1, nil })
	join = fn.New2("join", func(_ context.Context, a, b string) (string, error) { return a + b, nil })
	show = fn.New3("show", func(_ context.Context, a int, b string, c point) (string, error) {
		return fmt.Sprintf("%d %q %+v", a, b, c), nil
	})
	sum = fn.New("sum", func(_ context.Context, all []int) (int, error) {
		n := 0
		for _, each := range all {
			n += each
		}
		return n, nil
	})
)

type point struct{ X, Y float64 }

// P03, P05: values go from call to call, in the order of the arguments, and the same
// one twice.
func TestValues(t *testing.T) {
	t.Parallel()
	m := newSite(t, t.TempDir(), one, inc, join, show)
	p := newPlan(t, m)
	n := one.Call(p)
	for range 5 {
		n = inc.Call(p, n)
	}
	odd := fn.Value("\x00<\n\"$1ü ")
	a := join.Call(p, fn.Value("a"), fn.Value(" b"))
	left := join.Call(p, a, fn.Value("l"))
	right := join.Call(p, fn.Value("r"), a)
	both := join.Call(p, left, right)
	twice := join.Call(p, left, left)
	strange := join.Call(p, odd, odd)
	shown := show.Call(p, n, strange, fn.Value(point{X: 1, Y: -0.5}))
	if _, err := n.Get(t.Context()); !errors.Is(err, plan.ErrNotSent) {
		t.Error(err)
	}
	must(t, p.Send(t.Context()))
	if _, err := n.Value(t.Context()); !errors.Is(err, plan.ErrNoResult) {
		t.Error(err)
	}
	run(t, p, task.PlanCompleted)
	checkValue(t, n, 6)
	checkValue(t, both, "a blra b")
	checkValue(t, twice, "a bla bl")
	checkValue(t, shown, fmt.Sprintf("6 %q {X:1 Y:-0.5}", strings.Repeat("\x00<\n\"$1ü ", 2)))
	checkValue(t, fn.Result[int](p, plan.ID(n.ID())), 6)
	var wrong *fn.ValueError
	if _, err := fn.Result[int](p, both).Get(t.Context()); !errors.Is(err, fn.ErrValue) || !errors.As(err, &wrong) || wrong.Task != both.ID() ||
		!strings.Contains(err.Error(), `"\"a blra b\"" is no int`) {
		t.Error(err)
	}
	if task, err := m.Task(t.Context(), both.ID()); err != nil || task.Input != "" || fmt.Sprint(task.Argv) != "[$1 $2]" {
		t.Errorf("%q %q, %v, want references", task.Input, task.Argv, err)
	}
}

// A hundred results are one argument, in their order; there may be none.
func TestAll(t *testing.T) {
	t.Parallel()
	digits := fn.New("digits", func(_ context.Context, all []int) (string, error) { return fmt.Sprint(all), nil })
	m := newSite(t, t.TempDir(), inc, sum, digits)
	p := newPlan(t, m)
	var parts []*fn.Future[int]
	var want []int
	for n := range 100 {
		parts, want = append(parts, inc.Call(p, fn.Value(n))), append(want, n+1)
	}
	total := sum.Call(p, fn.All(parts...))
	shown := digits.Call(p, fn.All(parts...))
	slices.Reverse(parts)
	back := digits.Call(p, fn.All(parts[98:]...))
	none := sum.Call(p, fn.All[int]())
	run(t, p, task.PlanCompleted)
	checkValue(t, total, 5050)
	checkValue(t, shown, fmt.Sprint(want))
	checkValue(t, back, "[2 1]")
	checkValue(t, none, 0)
	if task, err := m.Task(t.Context(), total.ID()); err != nil || fmt.Sprint(task.Argv) != "[[$1..100]]" {
		t.Errorf("%q, %v", task.Argv, err)
	}
}

// P08: a call that fails is tried again, and what needs it waits for its value.
func TestErrorIsTriedAgain(t *testing.T) {
	t.Parallel()
	var tries atomic.Int64
	flaky := fn.New("flaky", func(_ context.Context, n int) (int, error) {
		if tries.Add(1) < 3 {
			return 7, errors.New("not yet")
		}
		return n, nil
	}, quick)
	m := newSite(t, t.TempDir(), flaky, inc)
	p := newPlan(t, m)
	first := flaky.Call(p, fn.Value(1))
	second := inc.Call(p, first)
	run(t, p, task.PlanCompleted)
	checkValue(t, first, 1)
	checkValue(t, second, 2)
	checkRounds(t, m, first.ID(), 3)
	checkRounds(t, m, second.ID(), 1)
}

// An error that another try does not mend fails the call in its first round; what was
// to come after the failure runs.
func TestPermanent(t *testing.T) {
	t.Parallel()
	bad := fn.New0("bad", func(context.Context) (int, error) {
		return 0, fmt.Errorf("look: %w", worker.Permanent(errors.New("no such account")))
	}, quick)
	m := newSite(t, t.TempDir(), bad, inc, one)
	p := newPlan(t, m)
	failed := bad.Call(p, fn.WithSpec(func(s *task.Spec) { s.Retry.Limit = task.AtMost(9) }))
	other := bad.Call(p)
	needs := inc.Call(p, failed)
	after := one.Call(p, fn.After(plan.Failure(failed), plan.Any(other)))
	run(t, p, task.PlanFailed)
	for _, f := range []*fn.Future[int]{failed, other} {
		checkRounds(t, m, f.ID(), 1, "look: no such account")
	}
	checkValue(t, after, 1)
	for f, end := range map[*fn.Future[int]]statemachine.State{failed: statemachine.Failed, needs: statemachine.Cancelled} {
		var none *plan.ResultError
		if _, err := f.Get(t.Context()); !errors.As(err, &none) || none.End != end {
			t.Errorf("task %d: %v, want that it has ended %s", f.ID(), err, end)
		}
		if f == needs && !strings.Contains(none.Error(), fmt.Sprintf("task %d, which it needs, did not succeed; ", failed.ID())) {
			t.Errorf("task %d: %v, want because of which task", f.ID(), none)
		}
	}
}

// What cannot be decoded, encoded or stored is said with function, argument and task, and
// is not tried again.
func TestValuesThatDoNotFit(t *testing.T) {
	t.Parallel()
	long := fn.New0("long", func(context.Context) (string, error) { return strings.Repeat("x", 1999), nil }, quick)
	odd := fn.New0("odd", func(context.Context) (float64, error) { return math.NaN(), nil }, quick)
	m := newSite(t, t.TempDir(), one, join, inc, sum, long, odd)
	// the same names, as another release has them
	newInc := fn.New("inc", func(context.Context, string) (int, error) { return 0, nil }, quick)
	newJoin := fn.New2("join", func(context.Context, string, int) (string, error) { return "", nil }, quick)
	less := fn.New("join", func(context.Context, string) (string, error) { return "", nil }, quick)
	list := fn.New("inc", func(context.Context, []int) (int, error) { return 0, nil }, quick)
	p := newPlan(t, m, plan.OnFailure(task.FailureContinues))
	n := one.Call(p)
	badValue := newInc.Call(p, fn.Value("seven"))
	badResult := newJoin.Call(p, fn.Value("a"), n)
	badNumber := less.Call(p, fn.Value("a"))
	badList := list.Call(p, fn.All(n))
	tooLong := long.Call(p)
	noValue := inc.Call(p, fn.Result[int](p, tooLong), quick)
	noJSON := odd.Call(p)
	badItem := sum.Call(p, fn.All(n, fn.Result[int](p, n), fn.Output[int](p, noJSON)), quick)
	run(t, p, task.PlanFailed)
	for id, texts := range map[int64][]string{
		badValue.ID():  {"function inc, argument 1: ", `"\"seven\"" is no int`},
		badResult.ID(): {fmt.Sprintf("function join, argument 2, the result of task %d: ", n.ID()), `"1" is no string`},
		badNumber.ID(): {"function join takes 2 arguments and is called with 1"},
		badList.ID():   {"function inc, argument 1: a list of results is no int"},
		tooLong.ID():   {"function long, its result: it has 2001 bytes, and output_limit is 2000"},
		noValue.ID():   {fmt.Sprintf("function inc, argument 1, the result of task %d: it has ended failed", tooLong.ID())},
		noJSON.ID():    {"function odd, its result: it cannot be written as JSON: ", "NaN"},
		badItem.ID():   {fmt.Sprintf("function sum, argument 1, the result of task %d: it has ended failed", noJSON.ID())},
	} {
		checkRounds(t, m, id, 1, texts...)
	}
}

// What is wrong with a call is said when it is sent, and nothing is added.
func TestRefused(t *testing.T) {
	t.Parallel()
	m := newSite(t, t.TempDir(), inc)
	foreign := inc.Call(newPlan(t, m), fn.Value(1))
	anything := fn.New2("any", func(context.Context, int, any) (int, error) { return 0, nil })
	for want, spoil := range map[string]func(p *plan.Plan){
		"task 2 of the plan (any): function any, argument 2: it cannot be written as JSON": func(p *plan.Plan) {
			anything.Call(p, fn.Value(1), fn.Value[any](func() {}))
		},
		"task 2 of the plan (inc): function inc, argument 1: it is nil": func(p *plan.Plan) { inc.Call(p, nil) },
		"task 2 of the plan (inc), dependency 1: it is nil":             func(p *plan.Plan) { inc.Call(p, (*fn.Future[int])(nil)) },
		"task 3 of the plan (inc), dependency 2: it is nil": func(p *plan.Plan) {
			inc.Call(p, inc.Call(p, fn.Value(1)), fn.After(nil))
		},
		"dependency 1: it is a handle of plan 1":  func(p *plan.Plan) { inc.Call(p, foreign) },
		"task 2 of the plan (a/b): field program": func(p *plan.Plan) { fn.New0[int]("a/b", nil).Call(p) },
	} {
		p := newPlan(t, m)
		inc.Call(p, fn.Value(1))
		spoil(p)
		inc.Call(p, fn.Value(1))
		err := p.Ready(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if status, err := p.Status(t.Context()); err != nil || status.Total != 0 {
			t.Errorf("%+v, %v", status, err)
		}
	}
	if _, err := foreign.Get(t.Context()); !errors.Is(err, plan.ErrNotSent) {
		t.Error(err)
	}
	if _, err := fn.Result[int](newPlan(t, m), foreign).Get(t.Context()); !errors.Is(err, plan.ErrForeign) {
		t.Error(err)
	}
	if _, err := fn.Result[int](newPlan(t, m), nil).Get(t.Context()); !errors.Is(err, plan.ErrForeign) {
		t.Error(err)
	}
}

func TestHandlersRefused(t *testing.T) {
	t.Parallel()
	for want, of := range map[string][]fn.Function{
		`"inc" is there twice`: {inc, sum, inc},
		`"gone" is nil`:        {fn.New3[int, int, int, int]("gone", nil)},
		"function":             {fn.New0("", func(context.Context) (int, error) { return 0, nil })},
		"class":                {fn.New0("a b", func(context.Context) (int, error) { return 0, nil })},
	} {
		func() {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, want) {
					t.Errorf("panic %q, want %q", said, want)
				}
			}()
			fn.Handlers(of...)
		}()
	}
}

// What does not fit does not compile.
func TestTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		arg, param reflect.Type
		fits       bool
	}{
		{reflect.TypeFor[*fn.Future[int]](), reflect.TypeFor[fn.Arg[int]](), true},
		{reflect.TypeFor[*fn.Future[int]](), reflect.TypeFor[fn.Arg[string]](), false},
		{reflect.TypeFor[*fn.Future[int]](), reflect.TypeFor[fn.Arg[any]](), false},
		{reflect.TypeFor[*fn.Future[int]](), reflect.TypeFor[fn.Arg[[]int]](), false},
		{reflect.TypeOf(fn.Value(1)), reflect.TypeFor[fn.Arg[int]](), true},
		{reflect.TypeOf(fn.Value(1)), reflect.TypeFor[fn.Arg[int64]](), false},
		{reflect.TypeOf(fn.All[int]()), reflect.TypeFor[fn.Arg[[]int]](), true},
		{reflect.TypeOf(fn.All[int]()), reflect.TypeFor[fn.Arg[[]string]](), false},
		{reflect.TypeFor[*fn.Future[int]](), reflect.TypeFor[plan.Dep](), true},
	} {
		if c.arg.Implements(c.param) != c.fits {
			t.Errorf("%v as %v: %v", c.arg, c.param, !c.fits)
		}
	}
}
