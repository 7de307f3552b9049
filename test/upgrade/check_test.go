package upgrade

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/ops/audit"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
)

// checkTasks looks at what Redis holds: each task archived once, and its round
// the sum of its counters, whichever release counted.
func checkTasks(t *testing.T, sp *storetest.Space) {
	t.Helper()
	for id := int64(1); id <= tasks; id++ {
		task := sp.Task(t, id)
		if task.State != statemachine.Archived || task.Outcome != statemachine.Succeeded {
			t.Errorf("task %d is %s with outcome %s", id, task.State, task.Outcome)
		}
		for _, line := range []string{"-> archived", "-> succeeded"} {
			if n := strings.Count(task.Fields["log"], line); n != 1 {
				t.Errorf("task %d: %q stands %d times in its log:\n%s", id, line, n, task.Fields["log"])
			}
		}
		if want := fmt.Sprintf("done %d\n", id); !strings.HasSuffix(task.Fields[statemachine.RoundField(task.Round, "output")], want) {
			t.Errorf("task %d: the output of its last round ends otherwise than %q", id, want)
		}
		if sum := task.Fails + task.Timeouts + task.Losses + task.Releases + task.Faults; task.Round != sum {
			t.Errorf("task %d: round %d, but its counters make %d", id, task.Round, sum)
		}
	}
}

// checkLedgers compares with what programs and handlers wrote themselves: no round
// ran twice, the one that counts to its end, and each task was handled.
func checkLedgers(t *testing.T, sp *storetest.Space, dir string) {
	t.Helper()
	begun, ended := map[string]int{}, map[string]int{}
	for _, line := range lines(t, dir, "ledger") {
		round, what, _ := strings.Cut(line, " ")
		switch what {
		case "start":
			if begun[round]++; begun[round] > 1 {
				t.Errorf("round %s (task/round) was begun %d times", round, begun[round])
			}
		case "end":
			ended[round]++
		}
	}
	handled := map[string]bool{}
	for _, line := range lines(t, dir, "handled") {
		id, _, _ := strings.Cut(line, " ")
		handled[id] = true
	}
	for id := int64(1); id <= tasks; id++ {
		if last := fmt.Sprintf("%d/%d", id, sp.Task(t, id).Round); ended[last] != 1 {
			t.Errorf("round %s (task/round) counts as succeeded but its program ended %d times", last, ended[last])
		}
		if !handled[fmt.Sprint(id)] {
			t.Errorf("task %d was archived without being handled", id)
		}
	}
}

func lines(t *testing.T, dir, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// checkAudit leaves out what the auditor says of events: programs of a release
// before there were any move tasks and record nothing (docs/PROTOCOL.md, "Versions").
func checkAudit(t *testing.T, sp *storetest.Space, miscounts bool) {
	t.Helper()
	report, err := audit.Verify(t.Context(), sp.Store)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Violations {
		if v.Kind == audit.Path || miscounts && v.Kind == audit.Plan && strings.HasPrefix(v.Text, "plan 1 counts ") {
			continue
		}
		t.Errorf("verify: %+v", v)
	}
}
