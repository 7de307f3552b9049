package acceptance

import (
	"slices"
	"testing"

	"github.com/tdf-go/tdf/internal/ops/audit"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// B7, B8: Redis loses its last changes while everything is at work. A server says
// so and opens a new epoch; what ran is killed and run again, at no cost and never
// beside itself; what Redis still knows ends archived, and no id is given out twice.
func TestRedisLosesChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.leasing(t)
	spec, l := w.beating(t)
	worker := w.worker(t, "w1", "slots=2")
	w.worker(t, "w2", "slots=2")
	kept := w.open(t, times(4, spec)...)
	l.begun(t, 0, 4)
	back := w.Snapshot(t)
	gone := w.open(t, times(3, spec)...)
	w.passed(t, w.redisNow(t), 2*sm.Second) // the server looks each second
	lost := w.redisNow(t)
	back()
	server.Says(t, "redis has lost at least")
	l.begun(t, 1, 4)
	within(t, "from the loss to all programs running again", lost, w.redisNow(t), shortLease+4*sm.Second)
	fresh := w.open(t, spec)
	if fresh[0] <= slices.Max(gone)+1000 {
		t.Errorf("the next id is %d, after %v were given out", fresh[0], gone)
	}
	worker.Says(t, "took back a task of an earlier incarnation")
	l.release(t)
	for _, id := range append(kept, fresh...) {
		task := w.archived(t, id, sm.Succeeded)
		if task.Losses > 0 || task.Fails > 0 || task.Releases > 1 {
			t.Errorf("task %d pays for it: %+v", id, task.Task)
		}
	}
	l.noOverlap(t)
	w.noneLeft(t, "w1")
	w.noneLeft(t, "w2")
	wait.Eventually(t, patience, func() bool {
		report, err := audit.Verify(t.Context(), w.Store)
		return err == nil && report.OK()
	}, "the auditor finds something")
}
