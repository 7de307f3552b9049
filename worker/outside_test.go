package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/tdftest"
	"github.com/tdf-go/tdf/worker"
)

// These tests know of the package what a program of its users knows.

// start runs a worker until stop is called, or the test ends.
func start(t *testing.T, site *tdf.Site, o worker.Options) (w *worker.Worker, stop func()) {
	t.Helper()
	o.TempDir, o.SpoolDir, o.ProgramDir, o.DiskReserve = t.TempDir(), t.TempDir(), t.TempDir(), -1
	o.SleepMax = 10 * time.Millisecond // the time of tdftest stands still, and wakes nobody
	w, err := worker.New(site, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := wait.Receive(t, time.Minute, done, "the worker does not stop"); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return w, stop
}

// submit opens a task for a handler of that name.
func submit(t *testing.T, m *manager.Manager, name string, change ...func(*task.Spec)) int64 {
	t.Helper()
	spec := task.Spec{Program: name, Class: name}
	for _, c := range change {
		c(&spec)
	}
	opened, err := m.Submit(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return opened.ID
}

// ended waits until a task has ended.
func ended(t *testing.T, m *manager.Manager, id int64) *task.Task {
	t.Helper()
	for read, err := range m.Ended(t.Context(), []int64{id}) {
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	t.Fatalf("task %d does not end", id)
	return nil
}

// What is wrong with an option is said by its field, with the value and what to do.
func TestOptionError(t *testing.T) {
	t.Parallel()
	site, _ := tdftest.New(t)
	for field, c := range map[string]struct {
		change func(*worker.Options)
		value  any
		remedy string
	}{
		"Name":          {func(o *worker.Options) { o.Name = "a/b" }, "a/b", "choose a name"},
		"OutputLimit":   {func(o *worker.Options) { o.OutputLimit = 1 << 40 }, 1 << 40, "256 MiB"},
		"ErrorFile":     {func(o *worker.Options) { o.OutputFile, o.ErrorFile = "x", "./x" }, "./x", "different files"},
		"TempDir":       {func(o *worker.Options) { o.TempDir = "/no/such/dir" }, "/no/such/dir", "existing"},
		"SleepInitial":  {func(o *worker.Options) { o.SleepInitial = 1 }, "1ns", "1ms"},
		"SleepMax":      {func(o *worker.Options) { o.SleepMax = 1 }, "1ns", "1ms"},
		"SleepIncrease": {func(o *worker.Options) { o.SleepIncrease = math.NaN() }, "NaN", "1 to 1000"},
		"Env":           {func(o *worker.Options) { o.Env = "a b" }, "a b", "for example python"},
		"Labels":        {func(o *worker.Options) { o.Labels = []string{"zone"} }, "zone", "label=value"},
		"Resources":     {func(o *worker.Options) { o.Resources = task.Resources{"gpu": 0} }, "map[gpu:0]", "name=number"},
		"Classes":       {func(o *worker.Options) { o.Classes = []string{"a,b"} }, "a,b", "for example render=2.1"},
		"Settle":        {func(o *worker.Options) { o.Settle = "manager" }, "manager", "worker or server"},
		"OnRedisLoss":   {func(o *worker.Options) { o.OnRedisLoss = "wait" }, "wait", "stop or finish"},
		"MaxThreads":    {func(o *worker.Options) { o.MaxThreads = task.AtMost(-2) }, "-2", "task.Unlimited"},
	} {
		o := worker.Options{Handlers: map[string]worker.Handler{"h": nil}}
		o.SpoolDir = t.TempDir()
		c.change(&o)
		_, err := worker.New(site, o)
		var wrong *worker.OptionError
		if !errors.As(err, &wrong) || wrong.Field != field || fmt.Sprint(wrong.Value) != fmt.Sprint(c.value) || !strings.Contains(wrong.Remedy, c.remedy) {
			t.Errorf("%s: %v", field, err)
		}
	}
	var wrong *worker.OptionError
	if _, err := worker.New(nil, worker.Options{Handlers: map[string]worker.Handler{"h": nil}}); !errors.As(err, &wrong) || wrong.Field != "Backend" {
		t.Error(err)
	}
}

// A test can call a handler with a job of its own, and see what the handler says.
func TestZeroJob(t *testing.T) {
	t.Parallel()
	job := &worker.Job{}
	if said := job.Said(); !reflect.DeepEqual(said, worker.Said{}) {
		t.Errorf("before it has said anything: %+v", said)
	}
	h := func(_ context.Context, j *worker.Job) error {
		fmt.Fprint(j.Stdout(), "out ", j.Task.Input, len(j.Args))
		fmt.Fprint(j.Stderr(), "err")
		j.SetResult("first")
		j.SetResult("last")
		j.Progress(0.5, "half way")
		if err := j.SetMeta("phase", "load"); err != nil {
			return err
		}
		j.Logger().Debug("heard by nobody")
		select {
		case <-j.Draining():
			return worker.HandBack(0)
		default:
			return nil
		}
	}
	if err := h(t.Context(), job); err != nil {
		t.Error(err)
	}
	said := job.Said()
	if said.Stdout != "out 0" || said.Stderr != "err" || *said.Result != "last" {
		t.Errorf("%+v", said)
	}
	if p := said.Progress; p.Part == nil || *p.Part != 0.5 || p.Text != "half way" || said.Meta["phase"] != "load" {
		t.Errorf("%+v, %v", p, said.Meta)
	}
	short := &worker.Job{OutputLimit: 3}
	if err := h(t.Context(), short); err != nil {
		t.Error(err)
	}
	if said := short.Said(); len(said.Stdout) < 3 || said.Stdout == "out 0" {
		t.Errorf("not cut: %+v", said)
	}
}

// A result beyond the limit makes the round a failure.
func TestResultBeyondLimit(t *testing.T) {
	t.Parallel()
	site, _ := tdftest.New(t)
	m := manager.New(site, "test", manager.Options{})
	h := func(_ context.Context, j *worker.Job) error {
		j.SetResult(strings.Repeat("x", int(j.OutputLimit)+1))
		return nil
	}
	start(t, site, worker.Options{Handlers: map[string]worker.Handler{"h": h}, Settings: worker.Settings{OutputLimit: 30}})
	if read := ended(t, m, submit(t, m, "h")); !strings.Contains(read.Failure(), "the handler's result has 31 bytes, and output_limit is 30") {
		t.Errorf("%s: %q", read.State, read.Failure())
	}
}

// A handler knows which try it is and what it got of its node, and logs as its worker does.
func TestAttempt(t *testing.T) {
	t.Parallel()
	site, _ := tdftest.New(t)
	m := manager.New(site, "test", manager.Options{})
	var log bytes.Buffer
	h := func(_ context.Context, j *worker.Job) error {
		j.Logger().Info("trying", "attempt", j.Attempt)
		fmt.Fprint(j.Stdout(), j.Attempt, " ", len(j.Resources), " ", j.Resources["gpu"])
		switch j.Task.Round {
		case 0, 2:
			return worker.HandBack(0)
		case 1:
			return worker.RetryAfter(errors.New("it broke"), 0)
		}
		return nil
	}
	_, stop := start(t, site, worker.Options{
		Name: "w", Logger: slog.New(slog.NewJSONHandler(&log, nil)), Handlers: map[string]worker.Handler{"h": h},
		Settings: worker.Settings{Node: "n", Resources: task.Resources{"gpu": 3}},
	})
	id := submit(t, m, "h", func(s *task.Spec) {
		s.Resources, s.Retry = task.Resources{"gpu": 2}, task.Retry{Limit: task.AtMost(1), Delay: time.Hour}
	})
	if _, err := m.Wait(t.Context(), []int64{id}, nil); err != nil {
		t.Fatal(err)
	}
	stop()
	read, err := m.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if read.State != statemachine.Succeeded || read.Round != 3 || read.Releases != 2 || read.Fails != 1 ||
		read.Rounds[1].Output != "1 1 {2 [0 1]}" || read.Output() != "2 1 {2 [0 1]}" {
		t.Errorf("%s with %+v", read.State, read.Rounds)
	}
	if want := `"msg":"trying","worker":"w","task":1,"round":3,"attempt":2`; !strings.Contains(log.String(), want) {
		t.Errorf("it does not log %s:\n%s", want, log.String())
	}
}

// Handlers are wrapped in the middleware of their worker, the first one outermost.
func TestMiddleware(t *testing.T) {
	t.Parallel()
	site, _ := tdftest.New(t)
	m := manager.New(site, "test", manager.Options{})
	type key struct{}
	say := func(name string) func(worker.Handler) worker.Handler {
		return func(h worker.Handler) worker.Handler {
			return func(ctx context.Context, j *worker.Job) error {
				fmt.Fprint(j.Stdout(), name, "(")
				err := h(context.WithValue(ctx, key{}, name), j)
				fmt.Fprint(j.Stdout(), ")", err)
				return err
			}
		}
	}
	of := map[string]worker.Handler{
		"one": func(ctx context.Context, j *worker.Job) error {
			_, err := fmt.Fprint(j.Stdout(), ctx.Value(key{}))
			return err
		},
		"two": func(context.Context, *worker.Job) error { return errors.New("no") },
	}
	start(t, site, worker.Options{Handlers: of, Middleware: []func(worker.Handler) worker.Handler{say("a"), say("b")}})
	one, two := ended(t, m, submit(t, m, "one")), ended(t, m, submit(t, m, "two"))
	if one.Output() != "a(b(b)<nil>)<nil>" || two.Output() != "a(b()no)no" || two.Failure() != "no" {
		t.Errorf("%q, %q: %q", one.Output(), two.Output(), two.Failure())
	}
	plain := &worker.Job{}
	if err := of["two"](t.Context(), plain); err == nil || plain.Said().Stdout != "" {
		t.Errorf("the caller's handlers are changed: %v, %+v", err, plain.Said())
	}
}

// The context of a handler says why it is done; a worker that has ended does not run again.
func TestCauses(t *testing.T) {
	t.Parallel()
	site, _ := tdftest.New(t)
	m := manager.New(site, "test", manager.Options{})
	begun, causes := make(chan int64, 1), make(chan error, 1)
	w, stop := start(t, site, worker.Options{
		Handlers: map[string]worker.Handler{"h": func(ctx context.Context, j *worker.Job) error {
			begun <- j.Task.ID
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return ctx.Err()
		}},
		Settings: worker.Settings{Slots: 1, DrainTimeout: -1},
	})
	begin := func(change ...func(*task.Spec)) int64 {
		submit(t, m, "h", change...)
		return wait.Receive(t, time.Minute, begun, "the handler is not called")
	}
	var id int64
	for _, c := range []struct {
		change func(*task.Spec)
		done   func()
		want   error
		state  statemachine.State
	}{
		{func(s *task.Spec) { s.Timeout = 50 * time.Millisecond }, func() {}, worker.ErrTimeout, statemachine.TimedOut},
		{func(s *task.Spec) { s.EndIn = time.Second / 2 }, func() {}, worker.ErrTimeout, statemachine.Failed},
		{func(*task.Spec) {}, func() { cancelTask(t, m, id) }, worker.ErrCancelled, statemachine.Terminated},
		{func(*task.Spec) {}, stop, worker.ErrDraining, statemachine.Open},
	} {
		id = begin(c.change)
		c.done()
		if err := wait.Receive(t, time.Minute, causes, "the handler is not told"); !errors.Is(err, c.want) {
			t.Errorf("task %d: %v, want %v", id, err, c.want)
		}
		read := &task.Task{}
		wait.Eventually(t, time.Minute, func() (is bool) {
			var err error
			read, err = m.Task(t.Context(), id)
			return err == nil && read.State == c.state
		}, "task %d is not %s", id, c.state)
	}
	if err := w.Run(t.Context()); !errors.Is(err, worker.ErrStarted) {
		t.Errorf("run again: %v", err)
	}
}

func cancelTask(t *testing.T, m *manager.Manager, id int64) {
	t.Helper()
	if changes, err := m.Cancel(t.Context(), []int64{id}, manager.ChangeOptions{}); err != nil || changes[0].Err != nil {
		t.Fatalf("%+v, %v", changes, err)
	}
}
