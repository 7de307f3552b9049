package chaos

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/audit"
	"github.com/tdf-go/tdf/internal/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

// checkTasks looks at what Redis holds: each task archived once, with one
// complete record for the round that counted.
func checkTasks(t *testing.T, sp *storetest.Space) {
	t.Helper()
	losses := 0
	for id := int64(1); id <= tasks; id++ {
		task := sp.Task(t, id)
		if task.State != statemachine.Archived || task.Outcome != statemachine.Succeeded {
			t.Errorf("task %d is %s with outcome %s", id, task.State, task.Outcome)
		}
		if n := strings.Count(task.Log, "-> archived"); n != 1 {
			t.Errorf("task %d was archived %d times", id, n)
		}
		if n := strings.Count(task.Log, "-> succeeded"); n != 1 {
			t.Errorf("task %d has succeeded %d times", id, n)
		}
		if want := fmt.Sprintf("done %d\n", id); !strings.HasSuffix(task.Round(task.Task.Round).Output, want) {
			t.Errorf("task %d: the output of its last round ends otherwise than %q", id, want)
		}
		if task.Task.Round != task.Fails+task.Timeouts+task.Losses+task.Releases {
			t.Errorf("task %d: round %d, fails %d, timeouts %d, losses %d, releases %d",
				id, task.Task.Round, task.Fails, task.Timeouts, task.Losses, task.Releases)
		}
		losses += task.Losses
	}
	if t.Logf("%d losses", losses); losses == 0 {
		t.Error("no task lost its worker: the run has shown nothing of leases")
	}
}

// checkLedgers compares with what programs and handlers wrote themselves: each
// task ran to its end in the round that counted, no round ran twice or beside the
// next one, and each was handled at least once.
func checkLedgers(t *testing.T, sp *storetest.Space, dir string) {
	t.Helper()
	begun, ended, last := map[string]int{}, map[string]int{}, map[string]string{}
	for _, line := range lines(t, dir, "ledger") {
		round, what, _ := cutLast(line)
		id, _, _ := cutLast(round)
		switch what {
		case "start":
			begun[round]++
			last[id] = round
		case "end":
			ended[round]++
		}
		if last[id] != round {
			t.Errorf("round %s lives on (%s) while %s (task/round) runs", round, what, last[id])
		}
	}
	for round, n := range begun {
		if n > 1 {
			t.Errorf("round %s (task/round) was begun %d times", round, n)
		}
	}
	handled := map[string]bool{}
	for _, line := range lines(t, dir, "handled") {
		id, _, _ := strings.Cut(line, "/")
		handled[id] = true
	}
	for id := int64(1); id <= tasks; id++ {
		if last := fmt.Sprintf("%d/%d", id, sp.Task(t, id).Task.Round); ended[last] != 1 {
			t.Errorf("round %s counts as succeeded but its program ended %d times", last, ended[last])
		}
		if !handled[fmt.Sprint(id)] {
			t.Errorf("task %d was archived without being handled", id)
		}
	}
}

func cutLast(line string) (before, after string, ok bool) {
	i := strings.LastIndexByte(line, '/')
	if i < 0 {
		return line, "", false
	}
	return line[:i], line[i+1:], true
}

func checkAudit(t *testing.T, sp *storetest.Space) {
	t.Helper()
	report, err := audit.Verify(t.Context(), sp.Store)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Violations {
		t.Errorf("verify: %+v", v)
	}
}
