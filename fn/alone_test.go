package fn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-go/tdf/fn"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A call in no plan is a task with the class of its function, and its value is waited
// for, also by its id in another process.
func TestDo(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	slow := fn.New("slow", func(ctx context.Context, p point) (point, error) {
		select {
		case <-release:
			return point{p.Y, p.X}, nil
		case <-ctx.Done():
			return p, ctx.Err()
		}
	})
	m := newSite(t, t.TempDir(), inc, slow)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if n, err := inc.Do(ctx, m, 41); n != 42 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	future, err := slow.Submit(ctx, m, point{X: 1, Y: 2})
	must(t, err)
	var none *plan.ResultError
	if _, err := future.Value(ctx); !errors.As(err, &none) || none.End != statemachine.None || none.Task != future.ID() {
		t.Errorf("%v, want that it has not ended", err)
	}
	short, end := context.WithTimeout(ctx, 10*time.Millisecond)
	defer end()
	if _, err := future.Get(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want that the time is over", err)
	}
	close(release)
	for _, f := range []*fn.Future[point]{future, fn.Attach[point](m, future.ID())} {
		if p, err := f.Get(ctx); p != (point{2, 1}) || err != nil {
			t.Errorf("%v, %v", p, err)
		}
	}
	checkValue(t, future, point{2, 1})
	read, err := m.Task(ctx, future.ID())
	must(t, err)
	if read.Class != "slow" || read.Program != "slow" || read.Plan != 0 {
		t.Errorf("%+v", read.Spec)
	}
	if _, err := fn.Attach[int](m, 99).Get(ctx); !errors.Is(err, task.ErrNoTask) {
		t.Errorf("%v, want that there is no such task", err)
	}
}

// Functions of all numbers of arguments are called alone, and refuse what cannot travel.
func TestDoOfSomeArguments(t *testing.T) {
	t.Parallel()
	none := fn.New0("none", func(context.Context) (string, error) { return "", nil })
	two := fn.New2("two", func(_ context.Context, a string, b any) (string, error) { return fmt.Sprint(a, b), nil })
	three := fn.New3("three", func(_ context.Context, a, b string, c any) (string, error) { return fmt.Sprint(a, b, c), nil })
	m := newSite(t, t.TempDir(), none, two, three)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for want, submit := range map[string]func() (*fn.Future[string], error){
		"":    func() (*fn.Future[string], error) { return none.Submit(ctx, m) },
		"ab":  func() (*fn.Future[string], error) { return two.Submit(ctx, m, "a", "b") },
		"abc": func() (*fn.Future[string], error) { return three.Submit(ctx, m, "a", "b", "c") },
	} {
		future, err := submit()
		must(t, err)
		checkValue(t, future, want)
	}
	if _, err := none.Do(ctx, m); err != nil {
		t.Error(err)
	}
	for last, do := range map[int]func(any) (string, error){
		2: func(v any) (string, error) { return two.Do(ctx, m, "a", v) },
		3: func(v any) (string, error) { return three.Do(ctx, m, "a", "b", v) },
	} {
		var wrong *fn.ValueError
		if _, err := do(func() {}); !errors.As(err, &wrong) || wrong.Argument != last {
			t.Errorf("%v, want one about argument %d", err, last)
		}
	}
}

// A call in no plan that fails is not tried again by itself, and says what was wrong.
func TestDoFails(t *testing.T) {
	t.Parallel()
	var tries atomic.Int64
	flaky := fn.New("flaky", func(_ context.Context, n int) (int, error) {
		if tries.Add(1) <= 2 {
			return 0, errors.New("not yet")
		}
		return n, nil
	}, quick)
	m := newSite(t, t.TempDir(), flaky)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := flaky.Do(ctx, m, 7)
	var none *plan.ResultError
	if !errors.As(err, &none) || none.Task != 1 || none.End != statemachine.Failed || none.Message != "not yet" || !strings.Contains(err.Error(), "not yet") {
		t.Errorf("%v, want the failure of task 1", err)
	}
	checkRounds(t, m, 1, 1, "not yet")
	if n, err := flaky.Do(ctx, m, 7, fn.WithSpec(func(s *task.Spec) { s.Retry.Limit = task.AtMost(1) })); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	checkRounds(t, m, 2, 2)
}

// What cannot be submitted is not.
func TestSubmitRefused(t *testing.T) {
	t.Parallel()
	m := newSite(t, t.TempDir())
	anything := fn.New("any", func(context.Context, any) (int, error) { return 0, nil })
	var wrong *fn.ValueError
	_, err := anything.Submit(t.Context(), m, func() {})
	if !errors.Is(err, fn.ErrValue) || !errors.As(err, &wrong) || wrong.Function != "any" || wrong.Argument != 1 ||
		!errors.As(wrong.Err, new(*json.UnsupportedTypeError)) {
		t.Error(err)
	}
	if _, err := anything.Submit(t.Context(), m, 1, fn.After(plan.ID(1))); err == nil || !strings.Contains(err.Error(), "calls of a plan") {
		t.Error(err)
	}
	if _, err := fn.New[int, int]("a b", nil).Submit(t.Context(), m, 1); err == nil || !strings.Contains(err.Error(), "class") {
		t.Error(err)
	}
	if counts, err := m.Count(t.Context()); err != nil || counts.Total() != 0 {
		t.Errorf("%v, %v", counts, err)
	}
}

// A function is called by one line; some worker runs it.
func ExampleFunc_Do() {
	ctx := context.Background()
	greet := fn.New("greet", func(_ context.Context, name string) (string, error) { return "hello " + name, nil })
	m, done := exampleSite(greet) // a server, and a worker with fn.Handlers(greet)
	defer done()

	text, err := greet.Do(ctx, m, "world") // submit, wait, decode
	fmt.Println(text, err)
	// Output: hello world <nil>
}
