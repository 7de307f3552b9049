package acceptance

import (
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// deaf is a task that ignores SIGTERM, and its ledger.
func (w *world) deaf(t *testing.T) (task.Spec, ledger) {
	t.Helper()
	spec, l := w.beating(t)
	deaf := w.script(t, "deaf", "trap '' TERM\n"+beats)
	deaf.Input = spec.Input
	return deaf, l
}

// released checks the record of a task that was handed back once and succeeded.
func (w *world) released(t *testing.T, id int64) {
	t.Helper()
	checkFields(t, w.archived(t, id, sm.Succeeded), map[string]string{
		"releases": "1", "round": "1", "losses": "-", "fails": "0", "timeouts": "0",
		"0:worker": "drains", "0:executed": "-", "1:worker": "other", "1:output": "round 1 by other\n",
	})
}

// A10: SIGTERM drains. What ends within drain_timeout is recorded, what does not
// is stopped and handed back, which counts in releases only. Nothing more is
// claimed, and the worker leaves the registry.
func TestDrainBySignal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.archiver(t)
	spec, l := w.beating(t)
	ids := w.open(t, times(2, spec)...)
	drains := w.worker(t, "drains", "slots=4", "drain_timeout=3")
	l.begun(t, 0, 2)
	at := w.redisNow(t)
	drains.Signal(t, syscall.SIGTERM)
	drains.Says(t, "draining")
	wait.Eventually(t, patience, func() bool { return w.info(t, "drains").State == "draining" }, "the registry does not say so")
	ids = append(ids, w.open(t, spec)...)
	l.release(t, ids[0])
	opened := w.reopened(t, ids[1])
	within(t, "from the signal to the task handed back", at, opened, 5*sm.Second)
	if opened.Sub(at) < 3*sm.Second {
		t.Errorf("handed back after %s s, before drain_timeout = 3 was over", opened.Sub(at).Text())
	}
	drains.Finish(t)
	w.noneLeft(t, "drains")
	if state := w.info(t, "drains").State; state != "stopped" {
		t.Errorf("the registry says of the worker that has left: %s", state)
	}
	w.worker(t, "other")
	l.release(t)
	checkFields(t, w.archived(t, ids[0], sm.Succeeded), map[string]string{"round": "0", "releases": "-", "0:worker": "drains"})
	w.released(t, ids[1])
	third := w.archived(t, ids[2], sm.Succeeded)
	checkFields(t, third, map[string]string{"fails": "0", "losses": "-"})
	if by := last(third, "worker"); by != "other" {
		t.Errorf("the task opened meanwhile was run by %s", by)
	}
	l.noOverlap(t)
	w.sound(t)
}

// A10: a second SIGTERM kills what runs, even what ignores SIGTERM, and hands it
// back within 2 s.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.archiver(t)
	w.serverWith(t, "server", "server.timeout_grace=90") // longer than the grace of the worker
	spec, l := w.deaf(t)
	ids := w.open(t, times(4, spec)...)
	drains := w.worker(t, "drains", "slots=4", "drain_timeout=3600", "kill_grace=60")
	l.begun(t, 0, 4)
	drains.Signal(t, syscall.SIGTERM)
	drains.Says(t, "draining")
	at := w.redisNow(t)
	drains.Signal(t, syscall.SIGTERM)
	for _, id := range ids {
		within(t, "from the second signal to the task handed back", at, w.reopened(t, id), 2*sm.Second)
	}
	drains.Finish(t)
	w.noneLeft(t, "drains")
	w.worker(t, "other", "slots=4")
	l.release(t)
	for _, id := range ids {
		w.released(t, id)
	}
	l.noOverlap(t)
	w.sound(t)
}

// A10: while Redis does not answer, the second SIGTERM kills what runs at once too;
// it cannot be handed back then. A third one ends the worker. Its task counts as
// lost, as after a SIGKILL.
func TestThirdSignal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.archiver(t)
	w.serverWith(t, "server", "server.worker_timeout=9", "server.timeout_grace=90") // not what kills here
	proxy := w.Server.Proxy(t)
	spec, l := w.deaf(t)
	id := w.open(t, spec)[0]
	dies := w.launch(t, "dies", "tdf-worker", w.reaching(t, "dies", proxy.Addr(), "drain_timeout=3600", "kill_grace=60")...)
	l.begun(t, 0, 1)
	proxy.Hang()
	dies.Signal(t, syscall.SIGTERM)
	dies.Says(t, "draining")
	if len(w.processes("dies")) == 0 {
		t.Error("the program does not run: nothing is left to kill")
	}
	dies.Signal(t, syscall.SIGTERM)
	w.noneLeft(t, "dies")
	dies.Killed = true // its exit code is looked at here
	dies.Signal(t, syscall.SIGTERM)
	wait.Closed(t, 2*time.Second, dies.Done, "the worker does not end at the third signal")
	if code := dies.ProcessState.ExitCode(); code != cli.ExitTerminate {
		t.Errorf("ended with %d, want %d", code, cli.ExitTerminate)
	}
	w.worker(t, "other")
	l.release(t)
	w.lostOnce(t, id, "dies", "other")
	l.noOverlap(t)
	w.sound(t)
}
