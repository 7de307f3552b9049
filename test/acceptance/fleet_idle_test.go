package acceptance

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// idlers is how many workers do nothing, watched for how long.
const (
	idlers  = 200
	watched = 12 * time.Second
)

// C6: two hundred idle workers send one command a second each, at most; a task
// that is opened is claimed at once, by one of them.
func TestLongIdleFleet(t *testing.T) {
	t.Parallel()
	sp := storetest.On(t, redistest.Start(t))
	sp.Where.ReadTimeout = 3 * time.Second // the default
	var runs atomic.Int64
	startIdlers(t, sp, &runs)
	wait.Eventually(t, time.Minute, func() bool {
		n, err := sp.Raw.ZCard(t.Context(), sp.Key("lease")).Result()
		return err == nil && n == idlers
	}, "not all workers are registered")
	var sent atomic.Int64
	sp.Server.Monitor(t, func([]string) { sent.Add(1) })
	// A worker that has just become idle looks more often: within eight seconds nine times.
	wait.Never(t, 8*time.Second, func() bool { return false }, "the first claims are behind them")
	before := sent.Load()
	wait.Never(t, watched, func() bool { return runs.Load() > 0 }, "a task has run that was never opened")
	n := sent.Load() - before
	each := float64(n) / idlers / watched.Seconds()
	t.Logf("%d commands: %.2f a second and worker", n, each)
	if each > 1 || each < 0.1 {
		t.Errorf("an idle worker sends %.2f commands a second, want at most 1 and more than none", each)
	}
	id := sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "program", "idle", "class", "idle") }))[0]
	wait.Eventually(t, patience, func() bool { return sp.Task(t, id).State == sm.Succeeded }, "the task is not executed")
	stamps := storetest.Stamps(sp.Task(t, id), 0)
	within(t, "from opening to the claim", stamps["open"], stamps["running"], sm.Second)
	wait.Never(t, time.Second, func() bool { return runs.Load() > 1 }, "the task ran twice")
	if n := countLines(sp.Task(t, id).Fields["log"], "open -> running"); n != 1 {
		t.Errorf("the task was claimed %d times:\n%s", n, sp.Task(t, id).Fields["log"])
	}
}

// startIdlers starts the workers, each with connections of its own.
func startIdlers(t *testing.T, sp *storetest.Space, runs *atomic.Int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		work.Wait()
	})
	dir := t.TempDir()
	for i := range idlers {
		st, err := store.Dial(sp.Where, sp.Namespace, conn.WithPoolSize(4))
		if err != nil {
			t.Fatal(err)
		}
		idle := func(context.Context, *worker.Job) error {
			runs.Add(1)
			return nil
		}
		w, err := worker.New(nil, worker.Options{
			Name: fmt.Sprintf("idle-%d", i), Backend: st, Handlers: map[string]worker.Handler{"idle": idle},
			Settings: worker.Settings{ProgramDir: dir, Slots: 2},
		})
		if err != nil {
			t.Fatal(err)
		}
		work.Go(func() {
			if err := w.Run(ctx); err != nil {
				t.Errorf("worker %d: %v", i, err)
			}
			_ = st.Close()
		})
	}
}
