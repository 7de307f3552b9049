package manager

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// ended opens tasks and has them succeed.
func ended(tb testing.TB, m *Manager, n int) {
	tb.Helper()
	mustOpen(tb, m, n, spec())
	worktest.Drain(tb, worktest.Open(tb, m.Namespace()), worktest.Echo)
}

// ledger counts calls of handlers, and those that overlap.
type ledger struct {
	mu       sync.Mutex
	calls    map[int64]int
	by       map[*Manager]int
	now      map[int64]bool
	overlaps int
}

func (l *ledger) handler(m *Manager) Handler {
	return func(ctx context.Context, t *task.Task) error {
		l.note(m, t, 1)
		defer l.note(m, t, 0)
		_, err := m.Count(ctx) // takes a moment
		return err
	}
}

func (l *ledger) note(m *Manager, t *task.Task, calls int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if calls > 0 && l.now[t.ID] {
		l.overlaps++
	}
	l.calls[t.ID] += calls
	l.by[m] += calls
	l.now[t.ID] = calls > 0
}

// RA13: two managers share the work: without faults each task is handled once, by one
// of them.
func TestTwoManagers(t *testing.T) {
	t.Parallel()
	const n = 500
	ns := redistest.Namespace(t)
	l := &ledger{calls: map[int64]int{}, by: map[*Manager]int{}, now: map[int64]bool{}}
	a, b := newManager(t, ns, quick(), quiet()), newManager(t, ns, quick(), quiet())
	ended(t, a, n)
	var stops []func() error
	for _, m := range []*Manager{a, b} {
		stops = append(stops, background(t, m, Handlers{Succeeded: l.handler(m)}))
	}
	until(t, a, "the archive", archived(n))
	for _, stop := range stops {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	for id := int64(1); id <= n; id++ {
		if l.calls[id] != 1 {
			t.Errorf("handler called %d times for task %d", l.calls[id], id)
		}
	}
	if l.overlaps != 0 || len(l.calls) != n || l.by[a] == 0 || l.by[b] == 0 {
		t.Errorf("%d overlaps, %d tasks, %d and %d by the two managers", l.overlaps, len(l.calls), l.by[a], l.by[b])
	}
	if sum := a.Stats().Archived + b.Stats().Archived; sum != n {
		t.Errorf("%d archived by both together, want %d", sum, n)
	}
	checkNothingHeld(t, ns)
}

func checkNothingHeld(t *testing.T, ns string) {
	t.Helper()
	if left := redistest.Shared(t).Do(t, "EXISTS", ns+":handling"); left != int64(0) {
		t.Errorf("handling leases are left: %v", redistest.Shared(t).Do(t, "HGETALL", ns+":handling"))
	}
}

// A manager without handlers archives everything but what another handles, and
// that one keeps its tasks for as long as its handler runs, also when told to end.
func TestHandledTasksAreLeftAlone(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	// Three seconds: on a busy machine it must be renewed in time, and the look at who takes tasks is longer still.
	m := newManager(t, ns, quick(), withSettings("manager.handling_lease=3"))
	other, third := newManager(t, ns, quick()), newManager(t, ns, quick(), shortLease())
	ended(t, m, 50)
	called, release := make(chan int64, 100), make(chan struct{})
	h := Handlers{Succeeded: func(_ context.Context, task *task.Task) error {
		called <- task.ID
		<-release // whatever becomes of the context
		return nil
	}}
	stop := background(t, m, h)
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free)
	wait.Receive(t, limit, called, "the handler is not called")
	background(t, other, Handlers{Unhandled: Archive})
	until(t, m, "the others in the archive", archivedBut(readAtOnce))
	go func() { _ = stop() }()
	background(t, third, Handlers{Succeeded: func(_ context.Context, task *task.Task) error {
		called <- task.ID
		return nil
	}})
	wait.Never(t, 4*time.Second, func() bool { return len(called) > 0 || !has(t, m, archivedBut(readAtOnce)) }, "a task taken from a living manager")
	free()
	until(t, m, "the archive", archived(50))
	if err := stop(); err != nil {
		t.Error(err)
	}
	if st := m.Stats(); st.Archived != 1 {
		t.Errorf("stats %+v, want the one that was handled", st)
	}
}

func archivedBut(n int64) func(Counts) bool {
	return func(c Counts) bool { return c[statemachine.Succeeded] == n && c.Total() == n+c[statemachine.Archived] }
}

func has(t *testing.T, m *Manager, ok func(Counts) bool) bool {
	t.Helper()
	c, err := m.Count(t.Context())
	return err == nil && ok(c)
}

// A manager that is frozen for longer than its lease finds its context
// ended, and archives nothing of what another one handles meanwhile.
func TestFrozenManager(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m := newManager(t, ns, quick(), shortLease())
	ended(t, m, 1)
	child := childManager(t, "freezes", ns)
	var said strings.Builder
	child.Stdout = &said
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, m, "the call of the child's handler", func(c Counts) bool { return c[statemachine.Open] == 1 })
	called, release := make(chan string, 10), make(chan struct{})
	background(t, m, Handlers{Succeeded: func(_ context.Context, task *task.Task) error {
		called <- task.IdempotencyKey()
		<-release
		return nil
	}})
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free)
	if key := wait.Receive(t, limit, called, "the task is not taken over"); key != ns+":1:0" {
		t.Errorf("taken over with key %q", key)
	}
	if err := child.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
	if got := said.String(); !strings.HasPrefix(got, "archived 0, ") || !strings.Contains(got, "the handling lease is lost") || !strings.HasSuffix(got, ", <nil>\n") {
		t.Errorf("the late manager says %q", got)
	}
	if !has(t, m, func(c Counts) bool { return c[statemachine.Succeeded] == 1 }) {
		t.Error("the late manager has archived the task")
	}
	free()
	until(t, m, "the archive", func(c Counts) bool { return c[statemachine.Archived] == 1 })
	task, err := m.Task(t.Context(), 1)
	if err != nil || strings.Count(task.Fields["log"], "-> archived") != 1 || !strings.Contains(task.Fields["log"], "- m ") {
		t.Errorf("log %q, %v, want archived once, by m", task.Fields["log"], err)
	}
}

// The fence: a manager that does not know yet that its task was taken over has its
// archiving refused, and says so, whether its lease is over or the task alone is another's.
func TestLateArchiveIsRefused(t *testing.T) {
	t.Parallel()
	srv := redistest.Shared(t)
	for name, c := range map[string]struct {
		replaced bool
		says     string
	}{
		"lease": {true, "lost the lease on tasks that are handled; another manager may have them"},
		"task":  {false, "task not archived: it has changed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := redistest.Namespace(t) + name
			log := &listener{Handler: slog.NewTextHandler(t.Output(), nil), heard: make(chan string, 1000)}
			s, m := worktest.Open(t, ns), newManager(t, ns, quick(), withLogger(slog.New(log)))
			ended(t, m, 1)
			background(t, m, Handlers{Succeeded: func(ctx context.Context, _ *task.Task) error {
				h, replaces := fleet.NewHandling(time.Minute), []string{m.handling.Instance}
				if !c.replaced {
					replaces = nil
					srv.Do(t, "HDEL", ns+":handling", "1") //nolint:contextcheck // it has that of the test
				}
				if err := s.BeginHandling(ctx, h, &fleet.HandlingWatch{}, replaces...); err != nil {
					return err
				}
				got, err := s.Take(ctx, &tasks.TakeRequest{Instance: h.Instance, Outcome: statemachine.Succeeded, Ask: []int64{1}})
				if len(got.Granted) != 1 {
					return fmt.Errorf("granted %v: %w", got.Granted, err)
				}
				return err
			}})
			wait.Eventually(t, limit, func() bool {
				return wait.Receive(t, limit, log.heard, "no word of the refusal") == c.says
			}, "the refusal is not logged")
			wait.Eventually(t, limit, func() bool { return m.Stats().Passes > 2 }, "waiting for rounds")
			if !has(t, m, func(c Counts) bool { return c[statemachine.Succeeded] == 1 }) || m.Stats().HandlerErrors != 0 {
				t.Errorf("the late manager has archived the task; %+v", m.Stats())
			}
		})
	}
}

// A lease that was given back is not lost later: a timer that fires just then says nothing.
func TestReleasedIsNotLost(t *testing.T) {
	t.Parallel()
	log := &listener{Handler: slog.NewTextHandler(t.Output(), nil), heard: make(chan string, 1000)}
	m := newManager(t, redistest.Namespace(t), quick(), withLogger(slog.New(log)))
	h, err := m.lease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.end(t.Context())
	h.lose(ErrHandlingLost)
	close(log.heard)
	for text := range log.heard {
		if strings.Contains(text, "lost the lease") {
			t.Error(text)
		}
	}
}
