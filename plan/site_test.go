package plan_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/plan"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

func TestMain(m *testing.M) {
	conn.Silence()
	redistest.Main(m)
}

const patience = 30 * time.Second

// site is a namespace with a manager, a server and workers of Go functions.
type site struct {
	*manager.Manager

	mu  sync.Mutex
	ran []string // what was run, in the order of the ends: program, input and results
}

// handlers are Go functions by the names of programs.
type handlers map[string]worker.Handler

// newSite starts a server and workers of one slot each. Every site knows the programs
// "echo", which gives its words, and "fail"; handlers that succeed are noted in ran.
func newSite(t *testing.T, workers int, more handlers) *site {
	t.Helper()
	s := &site{Manager: newManager(t, redistest.Namespace(t))}
	all := handlers{}
	for name, h := range more {
		all[name] = s.noted(h)
	}
	all["echo"], all["fail"] = s.noted(echo), s.noted(fail)
	t.Cleanup(crew(t.Context(), t, s.Namespace(), workers, all))
	return s
}

func newManager(tb testing.TB, ns string) *manager.Manager {
	tb.Helper()
	return manager.New(storetest.At(tb, storetest.Where(redistest.Shared(tb)), ns, nil), "m", manager.Options{})
}

// noted notes who succeeds, and with which words.
func (s *site) noted(h worker.Handler) worker.Handler {
	return func(ctx context.Context, j *worker.Job) error {
		err := h(ctx, j)
		if err == nil {
			s.mu.Lock()
			s.ran = append(s.ran, strings.Join(j.Args, " "))
			s.mu.Unlock()
		}
		return err
	}
}

// done are the words of the tasks that have succeeded, in the order of their ends.
func (s *site) done() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.ran, "; ")
}

func echo(_ context.Context, j *worker.Job) error {
	fmt.Fprintln(j.Stdout(), strings.Join(j.Args, "+"))
	return nil
}

func fail(context.Context, *worker.Job) error { return fmt.Errorf("it broke") }

// goClass is the class of the default queue, for workers that have only handlers.
const goClass = "go"

// crew runs a server and workers until stop is called.
func crew(ctx context.Context, tb testing.TB, ns string, workers int, of handlers) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	site, err := tdf.Connect(ctx, tdf.Config{
		Addr: redistest.Shared(tb).Socket(), Namespace: ns, Logger: slog.New(slog.DiscardHandler), //nolint:contextcheck // Redis outlives the crew
	})
	if err != nil {
		panic(err)
	}
	daemon := func(run func(context.Context) error, err error) {
		if err != nil {
			panic(err)
		}
		running.Go(func() {
			if err := run(ctx); err != nil {
				panic(err)
			}
		})
	}
	_, err = site.Internal.Store.SetQueue(ctx, task.DefaultQueue, func(q *task.QueueSpec) error { return q.Set("class", goClass) })
	if err != nil {
		panic(err)
	}
	srv, err := server.New(site, server.Options{})
	daemon(srv.Run, err)
	for i := range workers {
		w, err := worker.New(site, worker.Options{Name: fmt.Sprintf("w%d", i), Handlers: of, Settings: worker.Settings{
			Node: fmt.Sprintf("n%d", i), Slots: 1, Classes: []string{goClass}, DrainTimeout: -1, KillGrace: 100 * time.Millisecond, DiskReserve: -1,
			SpoolDir: tb.TempDir(),
		}})
		daemon(w.Run, err)
	}
	return func() {
		cancel()
		running.Wait()
		_ = site.Close()
	}
}

// spec is a task of a Go function that does not rest after a failure.
func spec(program, input string) task.Spec {
	return task.Spec{Program: program, Input: input, Retry: task.Retry{Delay: -1}}
}

func newPlan(t *testing.T, s *site, opts ...plan.Option) *plan.Plan {
	t.Helper()
	p, err := plan.New(t.Context(), s.Manager, t.Name(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run lets a plan run to its end, and says how it came out.
func run(t *testing.T, p *plan.Plan) *task.Plan {
	t.Helper()
	must(t, p.Ready(t.Context()))
	return awaitEnd(t, p)
}

func awaitEnd(t *testing.T, p *plan.Plan) *task.Plan {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	status := &task.Plan{}
	done := make(chan error, 1)
	go func() {
		var err error
		status, err = p.Wait(ctx)
		done <- err
	}()
	defer func() {
		if t.Failed() {
			status, err := p.Status(ctx)
			t.Logf("%v, %+v", err, status)
		}
	}()
	must(t, wait.Receive(t, patience, done, "the plan does not end"))
	return status
}

// checkEnd compares the state, and "succeeded failed cancelled skipped".
func checkEnd(t *testing.T, got *task.Plan, state task.PlanState, counts ...int64) {
	t.Helper()
	e := got.Ended
	if got.State != state || got.Left != 0 || got.Over.IsZero() {
		t.Errorf("the plan is %s with %d left, over at %s: want %s", got.State, got.Left, got.Over, state)
	}
	is := []int64{e[statemachine.Succeeded], e[statemachine.Failed], e[statemachine.Cancelled], got.Skipped}
	if fmt.Sprint(is) != fmt.Sprint(counts) {
		t.Errorf("succeeded, failed, cancelled, skipped: %v, want %v", is, counts)
	}
}

func checkDone(t *testing.T, s *site, want string) {
	t.Helper()
	if got := s.done(); got != want {
		t.Errorf("ran %q, want %q", got, want)
	}
}

func checkResult(t *testing.T, p *plan.Plan, of plan.Dep, want string) {
	t.Helper()
	if got, err := p.Result(t.Context(), of); err != nil || got != want {
		t.Errorf("result %q, %v, want %q", got, err, want)
	}
}

func stateOf(t *testing.T, s *site, id int64) statemachine.State {
	t.Helper()
	task, err := s.Task(t.Context(), id)
	must(t, err)
	return task.State
}
