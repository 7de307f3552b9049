package manager_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/tdftest"
	"github.com/tdf-go/tdf/worker"
)

// These tests know of the package what a program of its users knows.

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

// handlers are those of a worker: good succeeds, bad fails, and slow waits until it is stopped, which it tells before.
func handlers(slow chan<- int64) map[string]worker.Handler {
	return map[string]worker.Handler{
		"good": func(context.Context, *worker.Job) error { return nil },
		"bad":  func(context.Context, *worker.Job) error { return errors.New("no") },
		"slow": func(ctx context.Context, job *worker.Job) error {
			slow <- job.Task.ID
			<-ctx.Done()
			return context.Cause(ctx)
		},
	}
}

// Each outcome has its handler, and a manager leaves alone what its selection does not mean.
func TestHandlersOfOutcomes(t *testing.T) {
	t.Parallel()
	site, clock := tdftest.New(t)
	m := manager.New(site, "test", manager.Options{Settings: manager.Settings{RoundDuration: time.Millisecond}})
	slow := make(chan int64, 10)
	tomorrow := func(s *task.Spec) { s.StartIn, s.EndIn = 24*time.Hour, 25*time.Hour }
	want := map[int64]statemachine.State{
		submit(t, m, "good"): statemachine.Succeeded,
		submit(t, m, "bad"):  statemachine.Failed,
		submit(t, m, "slow", func(s *task.Spec) { s.Timeout = 50 * time.Millisecond }): statemachine.TimedOut,
		submit(t, m, "good", tomorrow): statemachine.Expired,
	}
	called, stopped, others := submit(t, m, "good", tomorrow), submit(t, m, "slow"), submit(t, m, "good")
	want[called], want[stopped] = statemachine.Cancelled, statemachine.Terminated
	cancel(t, m, called)
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		tdftest.Work(t, site, handlers(slow))
	}()
	for wait.Receive(t, time.Minute, slow, "no slow task begins") != stopped {
	}
	cancel(t, m, stopped)
	wait.Closed(t, time.Minute, worked, "the worker does not come to an end")
	clock.Advance(30 * time.Hour)

	got := map[int64]statemachine.State{}
	of := func(outcome statemachine.State) manager.Handler {
		return func(_ context.Context, t *task.Task) error {
			got[t.ID] = outcome
			return nil
		}
	}
	err := m.Run(t.Context(), manager.Handlers{
		Only:      manager.Selection{IDs: []manager.IDRange{{First: 1, Last: others - 1}}},
		Succeeded: of(statemachine.Succeeded), Failed: of(statemachine.Failed),
		TimedOut: of(statemachine.TimedOut), Expired: of(statemachine.Expired), Cancelled: of(statemachine.Cancelled),
		Terminated: of(statemachine.Terminated), Orphaned: of(statemachine.Orphaned),
		Stop: func(context.Context, int) bool { return m.Stats().Archived == len(want) },
	})
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("handled %v, want %v; %v", got, want, err)
	}
	if other, err := m.Task(t.Context(), others); err != nil || other.State != statemachine.Succeeded {
		t.Errorf("the task of others is %v, %v", other, err)
	}
}

// A handler that fails is called again later, and Stats say of which task and why.
func TestHandlerIsCalledAgain(t *testing.T) {
	t.Parallel()
	site, _ := tdftest.New(t)
	m := manager.New(site, "test", manager.Options{Settings: manager.Settings{
		RoundDuration: time.Millisecond, HandlerBackoff: time.Millisecond, HandlerBackoffMax: 2 * time.Millisecond, BatchSize: 1,
	}})
	id := submit(t, m, "good")
	tdftest.Work(t, site, handlers(nil))
	broken, calls, seen := errors.New("the disk is full"), 0, manager.Stats{}
	err := m.Run(t.Context(), manager.Handlers{
		Succeeded: func(ctx context.Context, _ *task.Task) error {
			if err := m.Run(ctx, manager.Handlers{Unhandled: manager.Archive}); !errors.Is(err, manager.ErrRunning) {
				t.Errorf("a second Run: %v", err)
			}
			if calls++; calls < 3 {
				return broken
			}
			return nil
		},
		AfterPass: func(context.Context, int) error {
			if now := m.Stats(); len(now.Retrying) > 0 {
				seen = now
			}
			return nil
		},
		Stop: func(context.Context, int) bool { return m.Stats().Archived == 1 },
	})
	if err != nil || calls != 3 || m.Stats().HandlerErrors != 2 || m.Stats().Passes < 1 {
		t.Errorf("%d calls, %+v, %v", calls, m.Stats(), err)
	}
	if r := seen.Retrying; len(r) != 1 || r[0].ID != id || r[0].Attempts < 1 || !errors.Is(r[0].Err, broken) || r[0].Next.IsZero() {
		t.Errorf("the statistics before the last call: %+v", seen)
	}
}

// What a program gives wrong it is told by the error, and nothing happens.
func TestMisuse(t *testing.T) {
	t.Parallel()
	site, _ := tdftest.New(t)
	secret := errors.New("tasks of this tenant need a quota")
	m := manager.New(site, "test", manager.Options{
		Logger: slog.New(slog.DiscardHandler),
		BeforeSubmit: func(_ context.Context, s *task.Spec) error {
			if s.Meta["tenant"] == "" {
				return secret
			}
			return nil
		},
	})
	if _, err := m.Submit(t.Context(), task.Spec{Program: "good", Class: "good"}); !errors.Is(err, secret) {
		t.Errorf("Submit = %v", err)
	}
	if err := m.Run(t.Context(), manager.Handlers{}); !errors.Is(err, manager.ErrNoHandler) {
		t.Errorf("Run = %v", err)
	}
	changes, err := m.Cancel(t.Context(), []int64{99}, manager.ChangeOptions{})
	if err != nil || len(changes) != 1 || changes[0].ID != 99 || !errors.Is(changes[0].Err, task.ErrNoTask) {
		t.Errorf("Cancel = %+v, %v", changes, err)
	}
	if counts, err := m.Count(t.Context()); err != nil || counts.Total() != 0 {
		t.Errorf("%v, %v", counts, err)
	}
}

// A standby manager stays away where a project's own one handles the outcomes.
func TestStandby(t *testing.T) {
	t.Parallel()
	site, _ := tdftest.New(t)
	own := manager.New(site, "own", manager.Options{})
	standby := manager.New(site, "standby", manager.Options{Standby: true})
	err := own.Run(t.Context(), manager.Handlers{Unhandled: manager.Archive, Stop: func(ctx context.Context, _ int) bool {
		if err := standby.Run(ctx, manager.Handlers{Unhandled: manager.Archive}); !errors.Is(err, manager.ErrManagerAlive) {
			t.Errorf("%s runs beside %s: %v", standby.Name(), own.Name(), err)
		}
		return true
	}})
	if err != nil {
		t.Error(err)
	}
}

// A handler whose tasks are taken from its manager is told so by its context.
func TestHandlingLost(t *testing.T) {
	t.Parallel()
	site, _ := tdftest.New(t)
	m := manager.New(site, "test", manager.Options{Settings: manager.Settings{HandlingLease: time.Second, RoundDuration: time.Millisecond}})
	submit(t, m, "good")
	tdftest.Work(t, site, handlers(nil))
	ctx, stop := context.WithCancel(t.Context())
	var cause error
	err := m.Run(ctx, manager.Handlers{Succeeded: func(ctx context.Context, _ *task.Task) error {
		defer stop()
		if _, err := manager.New(site, "another", manager.Options{}).Flush(ctx); err != nil {
			t.Error(err)
		}
		wait.Closed(t, time.Minute, ctx.Done(), "the handler is not told")
		cause = context.Cause(ctx)
		return nil
	}})
	if err != nil || !errors.Is(cause, manager.ErrHandlingLost) {
		t.Errorf("the handler was told %v; %v", cause, err)
	}
}

// A replay is compared with what it repeats, once it has ended.
func TestReplayFromOutside(t *testing.T) {
	t.Parallel()
	site, _ := tdftest.New(t)
	m := manager.New(site, "test", manager.Options{})
	id := submit(t, m, "good")
	tdftest.Work(t, site, handlers(nil))
	again, err := m.Replay(t.Context(), id, manager.LastRound, manager.ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for ended, want := range []manager.Verdict{manager.Unknown, manager.Same} {
		c, err := m.CompareReplay(t.Context(), again)
		if err != nil || c.ID != id || c.Replay != again || c.Ended != (ended == 1) || c.Output != want || c.Error != want {
			t.Errorf("%+v, %v, want %s", c, err, want)
		}
		tdftest.Work(t, site, handlers(nil))
	}
}

// Who opens many tasks sees how far it is.
func TestSubmitAllTellsProgress(t *testing.T) {
	t.Parallel()
	site, _ := tdftest.New(t)
	m := manager.New(site, "test", manager.Options{Settings: manager.Settings{BatchSize: 2}})
	var done []int
	specs := slices.Values(slices.Repeat([]task.Spec{{Program: "good", Class: "good"}}, 5))
	opened, err := m.SubmitAll(t.Context(), specs, manager.WithProgress(func(n int) { done = append(done, n) }))
	if err != nil || len(opened) != 5 || !slices.Equal(done, []int{2, 4, 5}) {
		t.Errorf("%d opened, %v, after %v", len(opened), err, done)
	}
}

// A task has its key for as long as the settings say, and while it lives.
func TestKeyTTL(t *testing.T) {
	t.Parallel()
	site, clock := tdftest.New(t)
	m := manager.New(site, "test", manager.Options{Settings: manager.Settings{KeyTTL: time.Hour}})
	key := func(s *task.Spec) { s.Key = "nightly" }
	first := submit(t, m, "good", key)
	clock.Advance(59 * time.Minute)
	if again := submit(t, m, "good", key); again != first {
		t.Errorf("after 59 minutes it is task %d, and was %d", again, first)
	}
	clock.Advance(time.Hour)
	if again := submit(t, m, "good", key); again != first {
		t.Errorf("while task %d lives, there is also task %d", first, again)
	}
	cancel(t, m, first)
	if again := submit(t, m, "good", key); again == first {
		t.Error("the key is never forgotten")
	}
	freed := func(s *task.Spec) { s.Key, s.KeyUntil = "freed", task.KeyUntilEnd }
	first = submit(t, m, "good", freed)
	cancel(t, m, first)
	if again := submit(t, m, "good", freed); again == first {
		t.Error("what has ended has its key")
	}
}

// A task whose key another one has is refused, if it runs something else; the error says which it is.
func TestKeyTaken(t *testing.T) {
	t.Parallel()
	site, _ := tdftest.New(t)
	m := manager.New(site, "test", manager.Options{Settings: manager.Settings{BatchSize: 2}})
	key := func(s *task.Spec) { s.Key = "nightly" }
	first := submit(t, m, "good", key)
	specs := slices.Repeat([]task.Spec{{Program: "good", Class: "good"}}, 5)
	specs[3] = task.Spec{Program: "other", Key: "nightly"}
	opened, err := m.SubmitAll(t.Context(), slices.Values(specs))
	bad, _ := errors.AsType[*manager.SpecError](err)
	taken, _ := errors.AsType[*task.KeyTakenError](err)
	if len(opened) != 2 || bad == nil || bad.Index != 3 || taken == nil || *taken != (task.KeyTakenError{Key: "nightly", Task: first}) {
		t.Errorf("%d opened, %v", len(opened), err)
	}
}

func cancel(t *testing.T, m *manager.Manager, id int64) {
	t.Helper()
	if changes, err := m.Cancel(t.Context(), []int64{id}, manager.ChangeOptions{Reason: "not needed"}); err != nil || changes[0].Err != nil {
		t.Fatalf("%+v, %v", changes, err)
	}
}
