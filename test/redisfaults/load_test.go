package redisfaults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/ops/audit"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// ledger is what really happened, seen from outside TDF.
type ledger struct {
	mu     sync.Mutex
	begun  map[string]int // rounds, as "task/round"
	opened []int64
	ends   int
	held   chan struct{} // what the tasks wait for whose input says so
}

func newLedger() *ledger { return &ledger{begun: map[string]int{}, held: make(chan struct{})} }

// gate is what tasks wait for that are to: to be closed.
func (l *ledger) gate() chan struct{} { return l.held }

// ended waits until n of the waiting tasks have ended.
func (l *ledger) ended(t *testing.T, n int) {
	t.Helper()
	wait.Eventually(t, patience, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.ends >= n
	}, "the tasks do not end")
}

// work is what each task does; its input says how.
func (l *ledger) work(ctx context.Context, j *worker.Job) error {
	l.mu.Lock()
	l.begun[fmt.Sprintf("%d/%d", j.Task.ID, j.Task.Round)]++
	l.mu.Unlock()
	timing.Pause(ctx, 30*time.Millisecond)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case j.Task.Input == "fails" && j.Task.Round == 0:
		return errors.New("not yet")
	case j.Task.Input == "waits":
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.held:
		}
		l.mu.Lock()
		l.ends++
		l.mu.Unlock()
	case j.Task.Input == "big":
		_, _ = j.Stdout().Write(slices.Repeat([]byte("x"), 300_000))
	}
	fmt.Fprintf(j.Stdout(), "done %d\n", j.Task.ID)
	return nil
}

func (l *ledger) note(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened = append(l.opened, id)
}

func (l *ledger) ids() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.opened)
}

// job is a task of the given kind, of high priority if it is for one worker.
func job(input, forWorker string) task.Spec {
	limit, urgent := task.AtMost(5), 1000
	s := task.Spec{Program: "job", Class: "job", Source: "none", Input: input, Retry: task.Retry{Limit: limit}, MaxLosses: limit}
	if forWorker != "" {
		s.Labels, s.Priority = []string{"worker=" + forWorker}, &urgent
	}
	return s
}

// open opens a task, however long Redis is away, and once only.
func (tm *team) open(ctx context.Context, spec task.Spec) (int64, error) {
	key := conn.NewToken()
	for {
		opened, err := tm.manager.Submit(ctx, spec, manager.WithRequestKey(key))
		switch {
		case err == nil:
			tm.ledger.note(opened.ID)
			return opened.ID, nil
		case !errors.Is(err, task.ErrUnreachable) || ctx.Err() != nil:
			return 0, err
		}
	}
}

// load opens tasks one after the other until stop is called, which returns when
// the last one is open.
func (tm *team) load(t *testing.T) (stop func()) {
	t.Helper()
	enough, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tm.openMany(t, enough)
	}()
	return func() {
		close(enough)
		wait.Closed(t, patience, done, "opening goes on")
	}
}

func (tm *team) openMany(t *testing.T, enough <-chan struct{}) {
	t.Helper()
	kinds := []string{"ok", "fails", "ok", "big", "ok"}
	for n := 0; ; n++ {
		select {
		case <-enough:
			return
		case <-time.After(15 * time.Millisecond):
		}
		if _, err := tm.open(t.Context(), job(kinds[n%len(kinds)], "")); err != nil {
			t.Errorf("open: %v", err)
			return
		}
	}
}

// awaitWork gives each worker a task and waits until all are archived: then opener,
// workers, server and archiver work.
func (tm *team) awaitWork(t *testing.T) {
	t.Helper()
	open := map[int64]bool{}
	for _, name := range workers {
		id, err := tm.open(t.Context(), job("ok", name))
		if err != nil {
			t.Fatal(err)
		}
		open[id] = true
	}
	wait.Eventually(t, patience, func() bool {
		for id := range open {
			if task, err := tm.store.Task(t.Context(), id); err != nil || task.State != statemachine.Archived {
				return false
			}
			delete(open, id)
		}
		return true
	}, "the tasks %v of %v (one for each worker) are not archived", slices.Collect(maps.Keys(open)), workers)
}

// await waits until a task is in a state.
func (tm *team) await(t *testing.T, id int64, state statemachine.State) {
	t.Helper()
	wait.Eventually(t, patience, func() bool {
		task, err := tm.store.Task(t.Context(), id)
		return err == nil && task.State == state
	}, "task %d is not %s", id, state)
}

// recovers is awaitWork after a fault that was over at end.
func (tm *team) recovers(t *testing.T, fault string, end time.Time, bar time.Duration) {
	t.Helper()
	tm.awaitWork(t)
	took := time.Since(end)
	t.Logf("recovery %s: %.1f s (bar %.0f s)", fault, took.Seconds(), bar.Seconds())
	wait.Within(t, "recovery "+fault, end, end.Add(took), bar)
}

// settled waits until every task that was opened is archived, and checks that each has succeeded, once, in a round that ran once, or
// once more for each time that Redis has lost what it had acknowledged, and a server has said so: a slow machine lets Sentinel
// replace a master by a replica that is behind.
func (tm *team) settled(t *testing.T) {
	t.Helper()
	ids := tm.ledger.ids()
	wait.Eventually(t, patience, func() bool {
		counts, err := tm.store.Count(t.Context())
		return err == nil && counts[statemachine.Archived] >= int64(len(ids))
	}, "not all of %d tasks are archived", len(ids))
	for _, id := range ids {
		tm.checkTask(t, id)
	}
	losses, err := tm.store.Epochs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tm.ledger.mu.Lock()
	defer tm.ledger.mu.Unlock()
	for round, n := range tm.ledger.begun {
		if n > 1+len(losses) {
			t.Errorf("round %s (task/round) was begun %d times", round, n)
		}
	}
	report, err := audit.Verify(t.Context(), tm.store)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Violations {
		t.Errorf("verify: %+v", v)
	}
	t.Logf("%d tasks, all archived", len(ids))
}

func (tm *team) checkTask(t *testing.T, id int64) {
	t.Helper()
	task, err := tm.store.Task(t.Context(), id)
	if err != nil {
		t.Errorf("task %d: %v", id, err)
		return
	}
	if task.State != statemachine.Archived || task.Outcome != statemachine.Succeeded {
		t.Errorf("task %d is %s, with outcome %s", id, task.State, task.Outcome)
	}
	if n := strings.Count(task.Fields["log"], "-> archived"); n != 1 {
		t.Errorf("task %d was archived %d times", id, n)
	}
	if out := task.Fields[statemachine.RoundField(task.Round, "output")]; !strings.HasSuffix(out, fmt.Sprintf("done %d\n", id)) {
		t.Errorf("task %d has the output of another round: %d bytes", id, len(out))
	}
}
