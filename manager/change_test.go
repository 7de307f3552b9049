package manager

import (
	"errors"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A reason is one line: it stands in a log.
func TestReasonIsALine(t *testing.T) {
	t.Parallel()
	m := newManager(t, redistest.Namespace(t))
	mustOpen(t, m, 1, spec())
	for field, call := range map[string]func() error{
		"reason": func() error { _, err := m.Cancel(t.Context(), []int64{1}, ChangeOptions{Reason: "a\nb"}); return err },
		"by":     func() error { _, err := m.Unhold(t.Context(), []int64{1}, ChangeOptions{By: "\x1b[2J"}); return err },
	} {
		if got := fieldOf(call()); got != field {
			t.Errorf("%q is blamed, want %q", got, field)
		}
	}
	if state := mustTask(t, m, 1).State; state != sm.Open {
		t.Errorf("the task is %s", state)
	}
}

// Only tasks that wait are cancelled; one that a worker has got goes on, and is not asked to stop.
func TestCancelOnlyWaiting(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m := newManager(t, ns)
	held := spec()
	held.Hold = "later"
	mustOpen(t, m, 1, spec())
	mustOpen(t, m, 1, held)
	claimed, err := worktest.Open(t, ns).Claim(t.Context(), tasks.ClaimRequest{
		Worker: "w", Request: "r", Candidates: storetest.Free(task.Bucket{}), Max: 1,
	})
	if err != nil || len(claimed.Tasks) != 1 {
		t.Fatalf("%+v, error %v", claimed, err)
	}
	mustOpen(t, m, 1, spec())
	ids := []int64{1, 2, 3, 9}
	for _, dry := range []bool{true, false} {
		done, err := m.CancelWaiting(t.Context(), ids, ChangeOptions{DryRun: dry, Reason: "no more"})
		if err != nil || !errors.Is(done[0].Err, task.ErrBegun) || done[0].After != sm.Running || done[0].Asked {
			t.Errorf("%+v, error %v", done, err)
		}
		if done[1].After != sm.Cancelled || done[2].After != sm.Cancelled || !errors.Is(done[3].Err, task.ErrNoTask) {
			t.Errorf("%+v", done)
		}
	}
	if one := mustTask(t, m, 1); one.State != sm.Running || !one.CancelRequested.IsZero() {
		t.Errorf("%+v", one)
	}
	if two := mustTask(t, m, 2); two.State != sm.Cancelled || two.CancelReason != "no more" {
		t.Errorf("%+v", two)
	}
	if _, err := m.CancelWaiting(t.Context(), ids, ChangeOptions{Reason: "a\nb"}); fieldOf(err) != "reason" {
		t.Errorf("%v", err)
	}
}
