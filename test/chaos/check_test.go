package chaos

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/ops/audit"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// examine looks at what is left when all is over, and reports what should not be.
func (tr *trial) examine(t *testing.T, opened map[int64]kind) {
	t.Helper()
	tr.checkFaults(t)
	tr.checkSurvivors()
	tr.readHistory(t)
	tasks := tr.checkTasks(t, opened)
	tr.checkLedger(t, tasks)
	tr.checkCanary(t)
	tr.checkHandled(t, tasks)
	tr.checkTrace(t)
	tr.checkAudit(t)
}

// enough is how long a run must be to have every fault.
const enough = 30 * time.Second

// checkFaults finds out what the run has shown nothing of.
func (tr *trial) checkFaults(t *testing.T) {
	t.Helper()
	r := tr.report
	r.Verdicts, r.Restarts = tr.fleet.verdicts(t), tr.fleet.again
	maps.Copy(r.Faults, tr.proxy.struck())
	for _, what := range tr.spares() {
		r.violate(spared, "%s", what)
	}
	if tr.duration >= enough && r.Verdicts == 0 {
		r.violate(spared, "no server has found a worker dead")
	}
}

// spares says what a run that is long enough for all has not harmed, and how not.
func (tr *trial) spares() (all []string) {
	if tr.duration < enough {
		return nil
	}
	struck := tr.proxy.struck()
	for _, c := range classes {
		if _, out := tr.report.LeftOut[c]; !out && tr.report.Faults[c]+struck[c] == 0 {
			all = append(all, fmt.Sprintf("no %s", c))
		}
	}
	for _, m := range tr.fleet.members {
		if m.hits == 0 {
			all = append(all, m.name+" was spared")
		}
	}
	return all
}

// checkSurvivors finds processes of rounds that are over.
func (tr *trial) checkSurvivors() {
	var left []int
	if !cameTrue(10*time.Second, func() bool {
		left = hosttest.ProcessesWith("TDF_NAMESPACE=" + tr.Namespace)
		return len(left) == 0
	}) {
		for _, pid := range left {
			tr.report.violate(survivor, "process %d", pid)
		}
	}
}

// checkTasks looks at what Redis holds: each task archived once, after the end it
// had to come to, with one complete record a round. It returns the tasks.
func (tr *trial) checkTasks(t *testing.T, opened map[int64]kind) []*tasks.TaskHeader {
	t.Helper()
	r := tr.report
	r.Tasks = len(opened)
	tasks := make([]*tasks.TaskHeader, 0, len(opened))
	for _, id := range slices.Sorted(maps.Keys(opened)) {
		found, err := tr.Store.Task(t.Context(), id)
		switch {
		case errors.Is(err, task.ErrNoTask):
			tr.missing(id)
			continue
		case err != nil:
			t.Fatal(err)
		case found.Err != nil:
			r.violate(record, "task %d: %v", id, found.Err)
			continue
		}
		tasks = append(tasks, found)
		if found.Fields[statemachine.RoundField(found.Round, statemachine.StampBegun)] != "" {
			r.Ahead++
		}
		tr.checkTask(found, opened[id])
		tr.checkLog(found)
	}
	if r.Losses == 0 && tr.duration >= enough {
		r.violate(spared, "no task lost its worker: the run has shown nothing of leases")
	}
	return tasks
}

// checkTask looks at the end of a task and at its counters.
func (tr *trial) checkTask(task *tasks.TaskHeader, k kind) {
	r := tr.report
	r.Ends[string(task.Outcome)]++
	r.Losses, r.Timeouts = r.Losses+task.Losses, r.Timeouts+task.Timeouts
	r.Fails, r.Releases = r.Fails+task.Fails, r.Releases+task.Releases
	if task.State != statemachine.Archived || task.Outcome != k.outcome {
		r.violate(unfinished, "task %d (%s) is %s with outcome %q, want %s", task.ID, k.word, task.State, task.Outcome, k.outcome)
		return
	}
	ends := 0 // a task that is not opened again has counted the end of its last round
	if k.outcome != statemachine.Succeeded {
		ends = 1
	}
	if n := task.Fails + task.Timeouts + task.Losses + task.Releases - ends; task.Round != n {
		r.violate(record, "task %d: round %d, but fails %d, timeouts %d, losses %d, releases %d",
			task.ID, task.Round, task.Fails, task.Timeouts, task.Losses, task.Releases)
	}
	want := fmt.Sprintf("done %d\n", task.ID)
	if k.outcome == statemachine.Succeeded && !strings.HasSuffix(task.Fields[statemachine.RoundField(task.Round, "output")], want) {
		r.violate(record, "task %d: the output of its last round ends otherwise than %q", task.ID, want)
	}
}

// checkLog looks for steps that were made twice.
func (tr *trial) checkLog(task *tasks.TaskHeader) {
	if strings.Contains(task.Fields["log"], "[lines left out]") {
		return // the events tell more, and the stamps
	}
	reported := 0
	for field := range task.Fields {
		if _, name, ok := statemachine.ParseRoundField(field); ok && name == string(statemachine.Executed) {
			reported++
		}
	}
	if n := strings.Count(task.Fields["log"], "running -> executed"); n > reported {
		tr.report.violate(doubled, "task %d: %d results of %d rounds", task.ID, n, reported)
	}
	if n := strings.Count(task.Fields["log"], "-> archived"); n > 1 {
		tr.report.violate(twice, "task %d: %d times", task.ID, n)
	}
}

func (tr *trial) checkAudit(t *testing.T) {
	t.Helper()
	found, err := audit.Verify(t.Context(), tr.Store)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found.Violations {
		tr.report.violate(auditor, "%+v", v)
	}
}
