package manager

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

const limit = 20 * time.Second

// background runs m until the test ends, or stop is called.
func background(tb testing.TB, m *Manager, h Handlers) (stop func() error) {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx, h) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	tb.Cleanup(func() { _ = stop() })
	return stop
}

// until waits for the counts to be as wanted.
func until(tb testing.TB, m *Manager, what string, ok func(Counts) bool) {
	tb.Helper()
	wait.Eventually(tb, limit, func() bool {
		c, err := m.Count(tb.Context())
		return err == nil && ok(c)
	}, "waiting for %s", what)
}

func archived(n int64) func(Counts) bool {
	return func(c Counts) bool { return c[statemachine.Archived] == n && c.Total() == n }
}

// outcomes is a task for each outcome that a worker and a server can bring about.
func outcomes() (specs []task.Spec, program worktest.Program) {
	late := spec()
	late.EndBefore = time.Unix(1000, 0)
	for _, input := range []string{"ok", "fail", "slow", "lost"} {
		specs = append(specs, task.Spec{Program: "p", Input: input, MaxLosses: task.AtMost(0)})
	}
	return append(specs, late), func(t *tasks.Claimed) worktest.Result {
		return worktest.Result{
			Output: "out " + t.Spec.Input, Error: map[string]string{"fail": "bad"}[t.Spec.Input],
			Overdue: t.Spec.Input == "slow", Lost: t.Spec.Input == "lost",
		}
	}
}

// A20, A46: each outcome goes to its handler, in the seed's order, then into the
// archive, with the outcome still to be read.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s, m := worktest.Open(t, ns), newManager(t, ns, quick())
	specs, program := outcomes()
	if _, err := m.SubmitAll(t.Context(), slices.Values(specs)); err != nil {
		t.Fatal(err)
	}
	worktest.Drain(t, s, program)
	var seen []string
	note := func(name string) Handler {
		return func(_ context.Context, task *task.Task) error {
			seen = append(seen, fmt.Sprintf("%s %d %s", name, task.ID, task.State))
			return nil
		}
	}
	err := m.Run(t.Context(), Handlers{
		Succeeded: note("S"), Failed: note("F"), TimedOut: note("T"), Expired: note("E"), Orphaned: note("O"),
		Stop: func(ctx context.Context, _ int) bool {
			c, err := m.Count(ctx)
			return err == nil && c.Unarchived() == 0
		},
	})
	want := []string{"S 1 succeeded", "F 2 failed", "T 3 timed_out", "E 5 expired", "O 4 orphaned"}
	if err != nil || !slices.Equal(seen, want) {
		t.Errorf("handled %q, %v, want %q", seen, err, want)
	}
	ends := []statemachine.State{"", "succeeded", "failed", "timed_out", "orphaned", "expired"}
	for id := int64(1); id <= 5; id++ {
		task, err := m.Task(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if task.State != statemachine.Archived || task.EndState() != ends[id] || task.Fields["0:archived"] == "" {
			t.Errorf("task %d: %s, ended %s, fields %v", id, task.State, task.EndState(), task.Fields)
		}
		if step := fmt.Sprintf("- m          moving task %d: %s -> archived", id, ends[id]); !strings.HasSuffix(task.Fields["log"], step) {
			t.Errorf("log %q, want %q at its end", task.Fields["log"], step)
		}
	}
	if st := m.Stats(); st.Archived != 5 || st.HandlerErrors != 0 || len(st.Retrying) != 0 {
		t.Errorf("stats %+v", st)
	}
}

// What has no handler of its own goes to Unhandled, and nothing else does.
func TestUnhandled(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s, m := worktest.Open(t, ns), newManager(t, ns, quick())
	var mu sync.Mutex
	got := map[statemachine.State]int{}
	background(t, m, Handlers{
		Succeeded: func(context.Context, *task.Task) error { return nil },
		Unhandled: func(_ context.Context, task *task.Task) error {
			mu.Lock()
			defer mu.Unlock()
			got[task.EndState()]++
			return nil
		},
	})
	specs, program := outcomes()
	for _, sp := range specs {
		if _, err := m.Submit(t.Context(), sp); err != nil {
			t.Fatal(err)
		}
	}
	worktest.Drain(t, s, program)
	until(t, m, "all in the archive", archived(int64(len(specs))))
	mu.Lock()
	defer mu.Unlock()
	want := map[statemachine.State]int{
		statemachine.Failed: 1, statemachine.TimedOut: 1, statemachine.Expired: 1, statemachine.Orphaned: 1,
	}
	if !maps.Equal(got, want) {
		t.Errorf("Unhandled got %v, want %v", got, want)
	}
}

func TestTasksWithoutHandlerAreArchived(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s, m := worktest.Open(t, ns), newManager(t, ns, withSettings("manager.round_duration=30", "manager.batch_size=7"))
	background(t, m, Handlers{Unhandled: Archive})
	mustOpen(t, m, 50, spec())
	worktest.Drain(t, s, worktest.Echo) // reacts at once: the round would be too long
	until(t, m, "50 in the archive", archived(50))
}

// A handler that fails for some tasks keeps no other task waiting, and is called
// again, later each time.
func TestHandlerErrors(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s, m := worktest.Open(t, ns), newManager(t, ns, quick(), withSettings("manager.batch_size=4"))
	mustOpen(t, m, 40, spec())
	worktest.Drain(t, s, worktest.Echo)
	broken := make(chan struct{})
	stop := background(t, m, Handlers{Succeeded: func(_ context.Context, task *task.Task) error {
		select {
		case <-broken:
			return nil
		default:
		}
		if task.ID <= 10 {
			return errors.New("database is away")
		}
		return nil
	}})
	until(t, m, "the 30 tasks behind the failing ones", func(c Counts) bool {
		return c[statemachine.Archived] == 30 && c[statemachine.Succeeded] == 10
	})
	wait.Eventually(t, limit, func() bool {
		st := m.Stats()
		early := slices.ContainsFunc(st.Retrying, func(r RetryingTask) bool { return r.Attempts < 3 })
		return len(st.Retrying) == 10 && !early && st.Retrying[9].ID == 10
	}, "waiting for repeated calls")
	if st := m.Stats(); st.HandlerErrors < 30 || st.Retrying[0].Err.Error() != "database is away" {
		t.Errorf("stats %+v", st)
	}
	close(broken)
	until(t, m, "all in the archive", archived(40))
	if err := stop(); err != nil {
		t.Errorf("Run = %v, want nil after its context ended", err)
	}
	if st := m.Stats(); len(st.Retrying) != 0 {
		t.Errorf("still retrying %v", st.Retrying)
	}
}

// A21, RA12: a manager killed in its handler has not archived the task; the next one
// gets it again and archives it, once.
func TestKilledInHandler(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s, m := worktest.Open(t, ns), newManager(t, ns, quick(), shortLease())
	mustOpen(t, m, 1, spec())
	worktest.Drain(t, s, worktest.Echo)
	child := childManager(t, "dies", ns)
	var exit *exec.ExitError
	if err := child.Run(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("child ended with %v, want killed", err)
	}
	c, err := m.Count(t.Context())
	if err != nil || c[statemachine.Open] != 1 || c[statemachine.Succeeded] != 1 {
		t.Fatalf("%v, %v, want one call of the child's handler, and the task still there", c, err)
	}
	first, err := m.Task(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	again := make(chan string, 10)
	background(t, m, Handlers{Succeeded: func(_ context.Context, task *task.Task) error {
		again <- task.IdempotencyKey()
		return nil
	}})
	if key := wait.Receive(t, limit, again, "the handler is not called again"); key != first.Input || key != ns+":1:0" {
		t.Errorf("handler called with key %q, and before with %q", key, first.Input)
	}
	until(t, m, "the archive", func(c Counts) bool { return c[statemachine.Archived] == 1 })
	task, err := m.Task(t.Context(), 1)
	if err != nil || strings.Count(task.Fields["log"], "-> archived") != 1 {
		t.Errorf("log %q, %v, want archived once", task.Fields["log"], err)
	}
}

func TestEndRoundAndStop(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t), quick())
	var rounds, asked []int
	err := m.Run(t.Context(), Handlers{
		Unhandled: Archive,
		AfterPass: func(_ context.Context, n int) error {
			rounds = append(rounds, n)
			if n == 1 {
				return errors.New("once")
			}
			return nil
		},
		Stop: func(_ context.Context, n int) bool {
			asked = append(asked, n)
			return n == 3
		},
	})
	if err != nil || !slices.Equal(rounds, []int{0, 1, 2, 3}) || !slices.Equal(asked, []int{0, 2, 3}) {
		t.Errorf("rounds %v, asked %v, %v, want 0..3, not asked in round 1, nil", rounds, asked, err)
	}
	if m.Stats().Passes != 4 {
		t.Errorf("stats %+v, want 4 rounds", m.Stats())
	}
}

// A47 for the manager: an idle round ends each round_duration, no earlier.
func TestIdleRounds(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	ticks := make(chan time.Time)
	asked := make(chan time.Duration, 100)
	m.after = func(d time.Duration) <-chan time.Time {
		if d <= mostLinger { // the subscription has come to be, which counts as a hint
			return time.After(0)
		}
		asked <- d
		return ticks
	}
	ended := make(chan int)
	background(t, m, Handlers{Unhandled: Archive, AfterPass: func(ctx context.Context, n int) error {
		select {
		case ended <- n:
		case <-ctx.Done():
		}
		return nil
	}})
	for n := range 4 {
		if got := wait.Receive(t, limit, ended, "round %d does not end", n); got != n {
			t.Fatalf("round %d, want %d", got, n)
		}
		wait.Never(t, 20*time.Millisecond, func() bool { return len(ended) > 0 }, "a round without reason")
		ticks <- time.Time{}
	}
	if d := <-asked; d != 1300*time.Millisecond {
		t.Errorf("a round lasts %v, want 1.3s", d)
	}
}

func TestRunTwice(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t), quick())
	begun := make(chan struct{}, 1000)
	background(t, m, Handlers{Unhandled: Archive, AfterPass: func(context.Context, int) error {
		begun <- struct{}{}
		return nil
	}})
	wait.Receive(t, limit, begun, "Run does not begin")
	if err := m.Run(t.Context(), Handlers{Unhandled: Archive}); !errors.Is(err, ErrRunning) {
		t.Errorf("second Run = %v, want ErrRunning", err)
	}
}

type daemon struct{ *Manager }

func (d daemon) Run(ctx context.Context) error {
	return d.Manager.Run(ctx, Handlers{Unhandled: Archive})
}

func TestLifecycle(t *testing.T) { //nolint:paralleltest // the battery looks for goroutines
	redistest.Shared(t) // before the battery counts goroutines
	daemontest.Battery{New: func(tb testing.TB) daemontest.Runner {
		return daemon{newManager(tb, redistest.Namespace(tb), quick())}
	}}.Exercise(t)
}

// A standby manager does not run beside a project's own manager, unless forced.
func TestStandby(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	own := newManager(t, ns, quick())
	begun := make(chan struct{}, 1000)
	stop := background(t, own, Handlers{Unhandled: Archive, AfterPass: func(context.Context, int) error {
		begun <- struct{}{}
		return nil
	}})
	wait.Receive(t, limit, begun, "Run does not begin")
	ends := Handlers{Unhandled: Archive, Stop: func(context.Context, int) bool { return true }}
	if err := newManager(t, ns, standby(false)).Run(t.Context(), ends); !errors.Is(err, ErrManagerAlive) {
		t.Errorf("beside an own manager: %v, want ErrManagerAlive", err)
	}
	if err := newManager(t, ns, standby(true)).Run(t.Context(), ends); err != nil {
		t.Errorf("forced: %v", err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := newManager(t, ns, standby(false)).Run(t.Context(), ends); err != nil {
		t.Errorf("after the own manager has gone: %v", err)
	}
}

// Redis goes away in the middle and comes back: nothing is lost, and no handler
// that was done is called again.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	ns, srv := redistest.Namespace(t), redistest.Shared(t)
	proxy := srv.Proxy(t)
	host, port, _ := cutAddr(proxy.Addr())
	log := &listener{Handler: slog.NewTextHandler(t.Output(), nil), heard: make(chan string, 1000)}
	s, m := worktest.Open(t, ns), newManager(t, ns, quick(), withLogger(slog.New(log)),
		at(host, port))
	mustOpen(t, m, 3, spec())
	worktest.Drain(t, s, worktest.Echo)
	calls := make(chan int64, 100)
	background(t, m, Handlers{Succeeded: func(_ context.Context, task *task.Task) error {
		if task.ID == 1 && len(calls) == 0 {
			proxy.Down()
		}
		calls <- task.ID
		return nil
	}})
	for range 3 {
		wait.Receive(t, limit, calls, "handler is not called")
	}
	wait.Eventually(t, limit, func() bool {
		return wait.Receive(t, limit, log.heard, "the outage is not noticed") == "lost the connection to redis, trying again"
	}, "the outage is not noticed")
	proxy.Up()
	wait.Eventually(t, limit, func() bool {
		return wait.Receive(t, limit, log.heard, "the end of the outage is not noticed") == "redis answers again"
	}, "the end of the outage is not noticed")
	until(t, newManager(t, ns), "the archive", archived(3))
	if len(calls) != 0 {
		t.Errorf("handlers called again for %d tasks", len(calls))
	}
}

// listener is a logger that a test can wait for.
type listener struct {
	slog.Handler
	heard chan string
}

func (l *listener) Handle(ctx context.Context, r slog.Record) error {
	l.heard <- r.Message
	return l.Handler.Handle(ctx, r)
}

func (l *listener) WithAttrs([]slog.Attr) slog.Handler { return l }

// Handlers are called again when their pause is over, not only once a round;
// and a look for which there was nothing to do is no round.
func TestBetweenRounds(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s := worktest.Open(t, ns)
	m := newManager(t, ns, quick(), withSettings("manager.round_duration=60"))
	mustOpen(t, m, 2, spec())
	calls := 0
	background(t, m, Handlers{Succeeded: func(context.Context, *task.Task) error {
		if calls++; calls%2 == 1 {
			return errors.New("once")
		}
		return nil
	}})
	worktest.Drain(t, s, worktest.Echo)
	until(t, m, "the archive", archived(2))
	wait.Never(t, 50*time.Millisecond, func() bool { return m.Stats().Passes > 3 }, "a round without a task")
}

// A task whose handler is done is archived, also if Run is told to end just then.
func TestEndWhileHandling(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s, m := worktest.Open(t, ns), newManager(t, ns)
	mustOpen(t, m, 2, spec())
	worktest.Drain(t, s, worktest.Echo)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	handled := 0
	err := m.Run(ctx, Handlers{Succeeded: func(context.Context, *task.Task) error {
		handled++
		cancel()
		return nil
	}})
	c, countErr := m.Count(t.Context())
	if err != nil || countErr != nil || handled != 1 || c[statemachine.Archived] != 1 || c[statemachine.Succeeded] != 1 {
		t.Errorf("%v, handled %d, %v, %v, want one handled and archived, the other left alone", err, handled, c, countErr)
	}
}

// Tasks that succeed without end do not keep failed ones waiting.
func TestNoStateStarves(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s, m := worktest.Open(t, ns), newManager(t, ns, quick())
	mustOpen(t, m, 2, spec())
	program := func(c *tasks.Claimed) worktest.Result {
		if c.Task.ID == 1 {
			return worktest.Fail(c)
		}
		return worktest.Echo(c)
	}
	worktest.Drain(t, s, program)
	failed := make(chan struct{}, 1)
	background(t, m, Handlers{
		Succeeded: func(ctx context.Context, _ *task.Task) error {
			if _, err := m.Submit(ctx, spec()); err != nil {
				return err
			}
			_, err := worktest.Round(ctx, s, program)
			return err
		},
		Failed: func(context.Context, *task.Task) error {
			failed <- struct{}{}
			return nil
		},
	})
	wait.Receive(t, limit, failed, "the failed task is not handled")
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := newHandlerRetries(Settings{HandlerBackoff: time.Second, HandlerBackoffMax: 5 * time.Second})
	now := time.Unix(1000, 0)
	for i, want := range []int{1, 2, 4, 5, 5} {
		if n, pause := b.fail(7, errors.New("x"), now, i); n != i+1 || pause.Seconds() != float64(want) {
			t.Errorf("attempt %d: %d, pause %v, want %d s", i+1, n, pause, want)
		}
	}
	if !b.waits(7, now.Add(4*time.Second), 9) || b.waits(7, now.Add(5*time.Second), 9) || b.waits(8, now, 9) {
		t.Error("task 7 does not wait for its pause, or another one does")
	}
	if !b.next().Equal(now.Add(5 * time.Second)) {
		t.Errorf("next %v", b.next())
	}
	b.forget(9)
	if b.forget(10); len(b.entries) != 0 {
		t.Error("a task not met any more is remembered")
	}
}

// A53: a damaged task is passed over, the others are archived.
func TestDamagedTaskIsPassedOver(t *testing.T) {
	t.Parallel()
	ns, srv := redistest.Namespace(t), redistest.Shared(t)
	s, m := worktest.Open(t, ns), newManager(t, ns, quick())
	mustOpen(t, m, 5, spec())
	worktest.Drain(t, s, worktest.Echo)
	srv.Do(t, "DEL", ns+":task:1")
	srv.Do(t, "HSET", ns+":task:2", "round", "many")
	background(t, m, Handlers{Succeeded: func(context.Context, *task.Task) error { return nil }})
	until(t, m, "three archived", func(c Counts) bool { return c[statemachine.Archived] == 3 && c[statemachine.Succeeded] == 2 })
}
