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
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
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
	if !errors.As(err, &none) || none.Task != 1 || none.End != statemachine.Failed || none.Message != "not yet" || !errors.Is(err, plan.ErrNoResult) {
		t.Errorf("%v, want the failure of task 1", err)
	}
	checkRounds(t, m, 1, 1, "not yet")
	if n, err := flaky.Do(ctx, m, 7, fn.WithSpec(func(s *task.Spec) { s.Retry.Limit = task.AtMost(1) })); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	checkRounds(t, m, 2, 2)
}

// coded is an error with an exit code.
type coded int

func (c coded) Error() string { return fmt.Sprint("code ", int(c)) }
func (c coded) ExitCode() int { return int(c) }

// The error of a call that did not succeed says how it ended, by which rule, and what its last round said.
func TestGetSaysTheCause(t *testing.T) {
	t.Parallel()
	ends := map[string]func(context.Context, int) (int, error){
		"plain":  func(context.Context, int) (int, error) { return 0, errors.New("no such account") },
		"exits":  func(context.Context, int) (int, error) { return 0, coded(7) },
		"panics": func(context.Context, int) (int, error) { panic("oh") },
		"final":  func(context.Context, int) (int, error) { return 0, worker.Permanent(errors.New("gone for good")) },
		"long": func(context.Context, int) (int, error) {
			return 0, errors.New("Traceback:\n" + strings.Repeat("  a line\n", 100) + "KeyError: 'x'\n")
		},
		"warns": func(ctx context.Context, _ int) (int, error) {
			fmt.Fprintln(fn.Job(ctx).Stderr(), "careful")
			return 1, nil
		},
		"slow": func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); return 0, ctx.Err() },
	}
	functions := make([]fn.Function, 0, len(ends))
	calls := map[string]fn.Func[int, int]{}
	for name, do := range ends {
		calls[name] = fn.New(name, do, fn.WithSpec(func(s *task.Spec) {
			s.Timeout = 200 * time.Millisecond
			if name == "final" {
				s.Retry.Limit = task.AtMost(5)
			}
		}))
		functions = append(functions, calls[name])
	}
	m := newSite(t, t.TempDir(), functions...)
	calls["nobody"] = fn.New[int, int]("nobody", nil)
	calls["late"] = fn.New[int, int]("late", nil, fn.WithSpec(func(s *task.Spec) { s.EndIn = time.Millisecond }))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for name, want := range map[string][]string{
		"plain":  {"failed: it failed 1 time, max_fails = 0", "round 0 of worker w", "class program", ": no such account"},
		"exits":  {"failed: ", "exit code 7", ": code 7"},
		"panics": {"failed: ", "the handler of 'panics' panicked: oh"},
		"final":  {"failed: its handler said that another try would not mend it", ": gone for good"},
		"long":   {"failed: ", ": Traceback: ... KeyError: 'x'"},
		"warns":  {"failed: ", ": careful"},
		"slow":   {"timed_out: its round took longer than its timeout of 200ms 1 time, max_timeouts = 0", "TERMINATED"},
		"nobody": {"cancelled: called off by m: not needed"},
		"late":   {"expired: no worker took it in time: its end_before was "},
	} {
		future, err := calls[name].Submit(ctx, m, 1)
		must(t, err)
		if name == "nobody" {
			_, err = m.Cancel(ctx, []int64{future.ID()}, manager.ChangeOptions{Reason: "not needed"})
			must(t, err)
		}
		_, err = future.Get(ctx)
		var none *plan.ResultError
		if !errors.Is(err, plan.ErrNoResult) || !errors.As(err, &none) || len(none.Reasons) == 0 {
			t.Fatalf("%s: %v", name, err)
		}
		for _, text := range append(want, fmt.Sprintf("task %d has ended ", future.ID())) {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q does not say %q", name, err, text)
			}
		}
		if strings.Contains(err.Error(), "archive") || strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
			t.Errorf("%s: %q says more than that", name, err)
		}
	}
}

// A worker of programs leaves the task of a function alone, and why says for whom it waits.
func TestProgramsLeaveFunctionsAlone(t *testing.T) {
	t.Parallel()
	m := newSite(t, t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	calls := make([]int64, 8)
	for i := range calls {
		future, err := inc.Submit(ctx, m, i)
		must(t, err)
		calls[i] = future.ID()
	}
	beside, err := m.Submit(ctx, task.Spec{Program: "echo", Source: task.CommandPrefix + "echo", Argv: []string{"hello"}})
	must(t, err)
	_, err = m.Wait(ctx, []int64{beside.ID}, nil)
	must(t, err)
	tasks, err := m.Tasks(ctx, calls)
	must(t, err)
	for _, of := range tasks {
		if of.State != statemachine.Open || of.Round != 0 || of.Releases != 0 || of.Rev != 0 || of.Last() != nil {
			t.Errorf("task %d was touched: %+v", of.ID, of)
		}
	}
	reasons, err := m.Why(ctx, calls[0])
	must(t, err)
	if r := reasons[0]; string(r.Kind) != string(task.KindClass) || !r.Blocks || !strings.Contains(r.Text, "needs class inc, the worker serves none") ||
		r.Change.Attribute != "classes" || r.Change.Value != "inc" {
		t.Errorf("%+v", reasons)
	}
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
