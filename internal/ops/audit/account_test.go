package audit

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/task"
)

// opened opens n tasks that may start at once.
func opened(t *testing.T, s *store.Store, n int) []int64 {
	t.Helper()
	specs := make([]task.Definition, n)
	for i := range specs {
		specs[i] = storetest.Define("program", "p", "source", "s", "input", fmt.Sprint(i), "max_losses", "0")
	}
	ids, err := s.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: specs})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// wantAccount checks the sum, and that nothing is wrong.
func wantAccount(t *testing.T, s *store.Store, want Account) Report {
	t.Helper()
	r, err := verify(t, s)
	if err != nil || !r.OK() {
		t.Fatalf("%+v, %v, want no violation", r.Violations, err)
	}
	if r.Account != want {
		t.Errorf("account %+v, want %+v", r.Account, want)
	}
	return r
}

// TestTakenAndNeverWritten: an id that a client in another language has taken is a note
// as long as the events prove that there never was a task; without them it is lost.
func TestTakenAndNeverWritten(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s := worktest.Open(t, ns)
	opened(t, s, 2)
	redistest.Shared(t).Do(t, "INCR", ns+":task_id")
	opened(t, s, 1)
	r := wantAccount(t, s, Account{Opened: 4, InStates: 3, Unwritten: 1})
	if len(r.Notes) != 1 || r.Notes[0].ID != 3 || r.Notes[0].Kind != Unwritten {
		t.Errorf("notes %+v", r.Notes)
	}
	redistest.Shared(t).Do(t, "DEL", ns+":events")
	r, err := verify(t, s)
	if err != nil || len(r.Violations) != 1 || r.Violations[0].Kind != Lost || r.Violations[0].ID != 3 || r.Account.Missing != 1 {
		t.Errorf("%+v, %v, want task 3 lost", r, err)
	}
}

// TestLeftOut: a million ids that an epoch left out are not walked over, and a task
// that exists among them counts as any other.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	s := worktest.Open(t, ns)
	opened(t, s, 2)
	srv := redistest.Shared(t)
	s.Remember(conn.History{Epoch: 1, Seq: 50, ID: 7}) // Redis has forgotten five tasks
	if e, err := s.OpenEpoch(t.Context(), false); err != nil || e.Epoch != 2 {
		t.Fatal(e, err)
	}
	opened(t, s, 1)
	r := wantAccount(t, s, Account{Opened: 1_000_008, InStates: 3, LeftOut: 1_000_005})
	if len(r.Notes) != 1 || r.Notes[0].Kind != LeftOut || !strings.Contains(r.Notes[0].Text, "ids 3 to 1000007") ||
		!strings.Contains(r.Notes[0].Text, "epoch 2 began: up to 5 ids") {
		t.Errorf("notes %+v", r.Notes)
	}
	if r.Checked != 3 {
		t.Errorf("checked %d tasks, want 3", r.Checked)
	}
	key := ns + ":task:5" // a client in another language had taken it, and writes it now
	srv.Do(t, "HSET", key, "id", "5", "program", "p", "source", "s", "input", "", "start_after", "0", "end_before", "inf",
		"timeout", "inf", "max_fails", "0", "max_timeouts", "0", "state", "open", "round", "0", "fails", "0", "timeouts", "0",
		"log", "", "namespace", ns, "0:open", "1")
	srv.Do(t, "ZADD", ns+":open", "0", "5")
	srv.Do(t, "ZADD", ns+":ready:default:::0", "1", "a5")
	wantAccount(t, s, Account{Opened: 1_000_008, InStates: 4, LeftOut: 1_000_004})
	srv.Do(t, "HDEL", key, "0:open")
	if r, err := verify(t, s); err != nil || len(r.Violations) != 1 || r.Violations[0].ID != 5 {
		t.Errorf("%+v, %v, want task 5 without its stamp", r.Violations, err)
	}
}

// TestBalance: what no look at single tasks finds shows in the sum.
func TestBalance(t *testing.T) {
	t.Parallel()
	s := worktest.Open(t, redistest.Namespace(t))
	opened(t, s, 3)
	a := newAuditor(s)
	a.pause = 0
	a.report.TaskID, a.report.Account.LeftOut = 3, 1
	if err := a.account(t.Context()); err != nil || len(a.report.Violations) != 1 || a.report.Violations[0].Kind != Balance {
		t.Errorf("%+v, %v, want a sum that is off", a.report.Violations, err)
	}
}

// TestCatchUp: ids that were given out while the audit was at work are part of it.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	s := worktest.Open(t, redistest.Namespace(t))
	opened(t, s, 3)
	a := newAuditor(s)
	for _, step := range []func(context.Context) error{a.begin, a.readHistory, a.walk} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	opened(t, s, 4)
	if err := a.account(t.Context()); err != nil || a.report.Account != (Account{Opened: 7, InStates: 7}) || !a.report.OK() {
		t.Errorf("%+v, %v", a.report, err)
	}
}

// TestMostViolations: a report stays small however much is wrong.
func TestMostViolations(t *testing.T) {
	t.Parallel()
	a := auditor{}
	a.say(make([]Violation, most-1)...)
	a.say(make([]Violation, 3)...)
	a.remark(Violation{})
	if len(a.report.Violations) != most || len(a.report.Notes) != 1 || a.report.Omitted != 2 {
		t.Errorf("%d violations, %d notes, %d omitted", len(a.report.Violations), len(a.report.Notes), a.report.Omitted)
	}
}
