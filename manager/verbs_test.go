package manager

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// claim claims up to n tasks, from every bucket there is, with a claim id.
func claim(tb testing.TB, s *store.Store, n int) []tasks.Claimed {
	tb.Helper()
	buckets, err := s.Buckets(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	c, err := s.Claim(tb.Context(), tasks.ClaimRequest{
		Worker: "w", Node: "n1", Request: conn.NewToken(), Candidates: storetest.Free(buckets...), Max: n,
		MaxThreads: task.Unlimited, Resources: task.Resources{"gpu": 4},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return c.Tasks
}

func mustTask(tb testing.TB, m *Manager, id int64) *task.Task {
	tb.Helper()
	t, err := m.Task(tb.Context(), id)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// refusedAs says how a change was refused.
func refusedAs(err error) string {
	var transition *sm.TransitionError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &transition):
		return "refused"
	case errors.Is(err, task.ErrNoTask):
		return "not found"
	case errors.Is(err, task.ErrDamaged):
		return "damaged"
	default:
		return err.Error()
	}
}

// checkChanges compares "before > after" and how it was refused, by id from 1 on.
func checkChanges(tb testing.TB, changes []Change, want ...string) {
	tb.Helper()
	got := make([]string, len(changes))
	for i, c := range changes {
		got[i] = strings.TrimRight(string(c.Before)+" > "+string(c.After)+" "+refusedAs(c.Err), " ")
		if c.Asked {
			got[i] += " asked"
		}
		if c.ID != int64(i)+1 {
			tb.Errorf("change %d is about task %d", i, c.ID)
		}
	}
	if !slices.Equal(got, want) {
		tb.Errorf("changes\n%q, want\n%q", got, want)
	}
}

// D13: what waits is cancelled at once and never runs; what has ended, what is not
// there and what is damaged stays as it is.
func TestCancelWaiting(t *testing.T) {
	t.Parallel()
	ns, srv := redistest.Namespace(t), redistest.Shared(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	mustOpen(t, m, 1, spec())
	worktest.Drain(t, s, worktest.Echo)
	mustOpen(t, m, 1, spec())
	mustOpen(t, m, 1, task.Spec{Program: "p", Hold: "later"})
	mustOpen(t, m, 1, spec())
	srv.Do(t, "HSET", ns+":task:4", "state", "nonsense")
	before := mustTask(t, m, 1)
	changes, err := m.Cancel(t.Context(), []int64{1, 2, 3, 4, 5}, ChangeOptions{By: "ann", Reason: "not wanted"})
	if err != nil {
		t.Fatal(err)
	}
	checkChanges(t, changes, "succeeded > succeeded refused", "open > cancelled", "blocked > cancelled", " >  damaged", " >  not found")
	if after := mustTask(t, m, 1); !maps.Equal(before.Fields, after.Fields) {
		t.Errorf("the ended task has changed: %v", after.Fields)
	}
	task := mustTask(t, m, 2)
	if task.CancelReason != "not wanted" || !task.CancelRequested.IsZero() || !strings.Contains(task.Fields["log"], "cancelled by ann: not wanted\n") ||
		!strings.HasSuffix(task.Fields["log"], "moving task 2: open -> cancelled") {
		t.Errorf("reason %q, log:\n%s", task.CancelReason, task.Fields["log"])
	}
	if got := claim(t, s, 10); len(got) != 0 {
		t.Errorf("claimed %v", got)
	}
}

// A running task is told to stop and not opened again, one that was reported is
// judged and not opened again; without a claim id it ends at once.
func TestCancelRunning(t *testing.T) {
	t.Parallel()
	ns, srv := redistest.Namespace(t), redistest.Shared(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	mustOpen(t, m, 2, task.Spec{Program: "p", Retry: task.Retry{Limit: task.AtMost(5)}, MaxTimeouts: task.AtMost(5)})
	tasks := claim(t, s, 2)
	srv.Do(t, "HDEL", ns+":task:2", "0:claim")
	changes, err := m.Cancel(t.Context(), []int64{1, 2}, ChangeOptions{Reason: "wrong input"})
	if err != nil {
		t.Fatal(err)
	}
	checkChanges(t, changes, "running > running asked", "running > terminated")
	again, err := m.Cancel(t.Context(), []int64{1}, ChangeOptions{Reason: "once more"})
	if err != nil {
		t.Fatal(err)
	}
	checkChanges(t, again, "running > running asked")
	task := mustTask(t, m, 1)
	if task.CancelRequested.IsZero() || task.CancelReason != "wrong input" ||
		strings.Count(task.Fields["log"], "stop asked for by m: wrong input") != 1 || strings.Contains(task.Fields["log"], "once more") {
		t.Errorf("asked at %v, reason %q, log:\n%s", task.CancelRequested, task.CancelReason, task.Fields["log"])
	}
	o := sm.Occurrence{Event: sm.StopOverdue, Actor: sm.Worker, Claim: tasks[0].Task.Current.Claim}
	stored, err := m.store.Task(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	move, err := sm.Decide(&stored.Task, o, stored.Current.Running)
	if err != nil || move.To != sm.TimedOut {
		t.Errorf("its timeout takes it to %s, %v", move.To, err)
	}
}

// D12: a blocked task is not claimed; released, it is.
func TestHoldAndRelease(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	mustOpen(t, m, 1, spec())
	mustOpen(t, m, 1, task.Spec{Program: "p", Hold: "from the beginning"})
	ids := []int64{1, 2}
	changes, err := m.Hold(t.Context(), ids, ChangeOptions{Reason: "no licence"})
	if err != nil {
		t.Fatal(err)
	}
	checkChanges(t, changes, "open > blocked", "blocked > blocked refused")
	if got := claim(t, s, 9); len(got) != 0 {
		t.Fatalf("claimed %v", got)
	}
	if a, b := mustTask(t, m, 1).Hold, mustTask(t, m, 2).Hold; a != "no licence" || b != "from the beginning" {
		t.Errorf("held because of %q, %q", a, b)
	}
	if changes, err = m.Unhold(t.Context(), ids, ChangeOptions{By: "bob", Reason: "it is here"}); err != nil {
		t.Fatal(err)
	}
	checkChanges(t, changes, "blocked > open", "blocked > open")
	task := mustTask(t, m, 1)
	if task.Hold != "" || !strings.Contains(task.Fields["log"], "held by m: no licence\n") || !strings.Contains(task.Fields["log"], "released by bob: it is here\n") {
		t.Errorf("held because of %q, log:\n%s", task.Hold, task.Fields["log"])
	}
	if got := claim(t, s, 9); len(got) != 2 {
		t.Errorf("claimed %v", got)
	}
}

// A dry run answers as the real one does and changes nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	mustOpen(t, m, 3, spec())
	claim(t, s, 1)
	ids := []int64{1, 2, 3, 4}
	before, _ := m.Tasks(t.Context(), ids)
	want := []string{"running > running asked", "open > cancelled", "open > cancelled", " >  not found"}
	changes, err := m.Cancel(t.Context(), ids, ChangeOptions{Reason: "why", DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	checkChanges(t, changes, want...)
	after, _ := m.Tasks(t.Context(), ids)
	for i := range 3 {
		if !maps.Equal(before[i].Fields, after[i].Fields) {
			t.Errorf("task %d has changed: %v", i+1, after[i].Fields)
		}
	}
	if changes, err = m.Cancel(t.Context(), ids, ChangeOptions{Reason: "why"}); err != nil {
		t.Fatal(err)
	}
	checkChanges(t, changes, want...)
}

// Many tasks are changed page by page, while a worker takes some of them.
func TestCancelRacesWithClaims(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	const n = 2500
	ids := mustOpen(t, m, n, spec())
	var worker sync.WaitGroup
	claimed := 0
	worker.Go(func() {
		for range 200 {
			claimed += len(claim(t, s, 3))
		}
	})
	changes, err := m.Cancel(t.Context(), ids, ChangeOptions{})
	worker.Wait()
	if err != nil || len(changes) != n {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	asked := 0
	for i, c := range changes {
		if c.ID != ids[i] || c.Err != nil || c.Asked != (c.After == sm.Running) || !c.Asked && c.After != sm.Cancelled {
			t.Fatalf("change %d: %+v", i, c)
		}
		if c.Asked {
			asked++
		}
	}
	counts, err := m.Count(t.Context())
	if err != nil || asked != claimed || counts[sm.Running] != int64(asked) || counts[sm.Cancelled] != int64(n-asked) {
		t.Errorf("%d asked, %d claimed, counts %v, %v", asked, claimed, counts, err)
	}
}
