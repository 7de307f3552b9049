package acceptance

import (
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// eight opens eight tasks and waits until all of them run at the worker of that
// name, which has eight slots.
func (w *world) eight(t *testing.T, worker string) ([]int64, ledger) {
	t.Helper()
	spec, l := w.beating(t)
	ids := w.open(t, times(8, spec)...)
	l.begun(t, 0, 8)
	if n := len(w.processes(worker)); n < 8 {
		t.Fatalf("%d processes of worker %s are seen, want at least 8: the test would prove nothing", n, worker)
	}
	return ids, l
}

// allBack checks that all tasks are opened again within the bound after at.
func (w *world) allBack(t *testing.T, ids []int64, at sm.Time, bound sm.Duration) {
	t.Helper()
	last := sm.Time(0)
	for _, id := range ids {
		last = max(last, w.reopened(t, id))
	}
	within(t, "from the loss of the worker to the last task opened again", at, last, bound)
}

// A5: a worker with eight tasks is killed. Nothing of them survives; all are open
// again within worker_timeout + 1 s, finish elsewhere and count one loss.
func TestWorkerKilled(t *testing.T) {
	t.Parallel()
	for _, layer := range containments {
		t.Run(layer, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.leasing(t)
			dies := w.worker(t, "dies", "slots=8", "containment="+layer)
			ids, l := w.eight(t, "dies")
			w.worker(t, "other", "slots=8")
			at := w.kill(t, dies)
			w.noneLeft(t, "dies")
			w.allBack(t, ids, at, shortLease+sm.Second)
			w.finishElsewhere(t, ids, l)
		})
	}
}

// finishElsewhere lets tasks that were at the worker dies finish at other.
func (w *world) finishElsewhere(t *testing.T, ids []int64, l ledger) {
	t.Helper()
	l.begun(t, 1, len(ids))
	l.release(t)
	for _, id := range ids {
		w.lostOnce(t, id, "dies", "other")
	}
	l.noOverlap(t)
	if state := w.info(t, "dies").State; state != "lost" {
		t.Errorf("the registry says of the dead worker: %s", state)
	}
	w.sound(t)
}

// A5 with the default worker_timeout of 15 s: within 20 s.
func TestLongWorkerKilledDefaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.archiver(t)
	dies := w.worker(t, "dies", "slots=8")
	ids, l := w.eight(t, "dies")
	w.worker(t, "other", "slots=8")
	at := w.kill(t, dies)
	w.noneLeft(t, "dies")
	w.allBack(t, ids, at, 17*sm.Second) // worker_timeout + 2 s
	w.finishElsewhere(t, ids, l)
}

// A5 with two servers that both find the worker dead: each loss counts once.
func TestWorkerKilledTwoServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.leasing(t)
	w.serverWith(t, "server-2", shortLeaseSet)
	dies := w.worker(t, "dies", "slots=8")
	ids, l := w.eight(t, "dies")
	w.worker(t, "other", "slots=8")
	at := w.kill(t, dies)
	w.allBack(t, ids, at, shortLease+sm.Second)
	w.finishElsewhere(t, ids, l)
	for _, id := range ids {
		if n := countLines(w.Task(t, id).Fields["log"], "running -> open"); n != 1 {
			t.Errorf("task %d was taken back %d times:\n%s", id, n, w.Task(t, id).Fields["log"])
		}
	}
}

// poison kills its worker: with containment=group that is the parent of the shim,
// which is its own parent.
const poison = `worker=$(awk '/^PPid:/ { print $2 }' "/proc/$PPID/status")
echo "$TDF_ROUND" >> "$1"; kill -9 "$worker"; sleep 60`

// A14: a task that kills its workers costs max_losses + 1 of them at most and
// ends orphaned; other tasks finish.
func TestPoison(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.leasing(t, "server.worker_timeout=2") // a worker that keeps none dies anyway
	start := func() *daemon {
		return w.worker(t, "w", "slots=2", "containment=group")
	}
	bad, good := w.script(t, "poison", poison), w.script(t, "good", "sleep 0.2; echo fine")
	bad.Input, bad.MaxLosses = w.file(t, "victims", "", 0o666), task.AtMost(2)
	ids := w.open(t, append([]task.Spec{bad}, times(6, good)...)...)
	worker, dead := start(), 0
	wait.Eventually(t, time.Minute, func() bool {
		if worker.Ended() && dead < 10 { // as a supervisor sees it
			worker.Killed = true
			worker = start()
			dead++
		}
		return w.state(t, ids[0]) == sm.Archived
	}, "the poisoned task does not end")
	if dead != 3 {
		t.Errorf("%d workers died, want max_losses + 1 = 3", dead)
	}
	checkFields(t, w.archived(t, ids[0], sm.Orphaned), map[string]string{"losses": "3", "round": "2", "fails": "0", "timeouts": "0"})
	if victims := content(t, bad.Input); victims != "0\n1\n2" {
		t.Errorf("the task killed its worker in the rounds %q, want 0 to 2", victims)
	}
	for _, id := range ids[1:] {
		checkFields(t, w.archived(t, id, sm.Succeeded), map[string]string{"fails": "0", "timeouts": "0"})
	}
	w.sound(t)
}
