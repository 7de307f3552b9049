package chaos

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
)

// checkLedger compares with what programs wrote themselves: each task ran to its
// end in the round that counted, no round ran twice or beside the next one, but
// for what a loss excuses that was noticed.
func (tr *trial) checkLedger(t *testing.T, tasks []*tasks.TaskHeader) {
	t.Helper()
	a := examineLedger(readLedger(t, tr.dir, "ledger"), bootTime(t))
	tr.report.Executions, tr.report.Mounts = a.executions, a.mounts
	excused := map[entry]bool{}
	tr.checkClashes(begunAgain, a.doubled, excused)
	tr.checkClashes(overlap, a.overlaps, excused)
	tr.report.RunAgain = len(excused)
	for _, task := range tasks {
		last := entry{task.ID, task.Round}
		if n := a.finished[last]; task.Outcome == statemachine.Succeeded && n == 0 {
			tr.report.violate(record, "round %v counts as succeeded but its program has not come to its end", last)
		}
	}
}

// checkClashes finds those that no loss excuses, and notes the rounds of the others.
func (tr *trial) checkClashes(promise broken, clashes []clash, excused map[entry]bool) {
	for _, c := range clashes {
		if tr.noticed.excuse(c) || promise == begunAgain && tr.forgot.between(c) {
			excused[c.entry] = true
			continue
		}
		tr.report.violate(promise, "round %v (task/round): %s", c.entry, tr.noticed.describe(c))
	}
}

// checkCanary looks whether what programs have mounted is still there, and whether
// they have where they can.
func (tr *trial) checkCanary(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tr.dir, "canary", "sub", "bird"))
	if err != nil || string(text) != canary {
		tr.report.violate(removed, "the directory that programs had mounted: %q, %v", text, err)
	}
	if tr.report.Mounts == 0 && os.Geteuid() == 0 && tr.duration >= enough {
		tr.report.violate(spared, "no program has mounted anything")
	}
}

// checkHandled compares with what handlers wrote: each task was handled, by one
// manager at a time. Who handled it may have been forgotten in a loss, and the
// manager is told at its next sign of life.
func (tr *trial) checkHandled(t *testing.T, tasks []*tasks.TaskHeader) {
	t.Helper()
	all := handlings(readLedger(t, tr.dir, "handled"))
	tr.report.HandledAgain = again(all)
	done := map[int64]bool{}
	for _, h := range all {
		done[h.task] = done[h.task] || !h.to.IsZero()
	}
	for _, task := range tasks {
		if task.State == statemachine.Archived && !done[task.ID] {
			tr.report.violate(unhandled, "task %d", task.ID)
		}
	}
	for _, c := range atOnce(all, tr.fleet.frozenWithin) {
		if !tr.noticed.excuse(c) {
			tr.report.violate(handledOnce, "task %d: %s", c.id, tr.noticed.describe(c))
		}
	}
}
