package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// refusedName starts a second worker of a name that lives, which must be refused.
func (w *world) refusedName(t *testing.T, name string, pid int) {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	second := w.launch(t, "second", "tdf-worker", w.workerArgs(name)...)
	second.Killed = true // its exit code is looked at here
	wait.Closed(t, patience, second.Done, "a second worker of a living name is not refused")
	if code := second.ProcessState.ExitCode(); code != cli.ExitUsage {
		t.Errorf("a second worker of a living name ended with %d, want %d", code, cli.ExitUsage)
	}
	contains(t, "the refusal", second.Log.String(), fmt.Sprintf("worker %q runs as process %d on host %q", name, pid, host))
}

// A16, A52: of two workers of one name, the second is refused; the first goes on
// and all results are its own.
func TestNameTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.archiver(t)
	spec, l := w.beating(t)
	ids := w.open(t, times(3, spec)...)
	first := w.worker(t, "w", "slots=2")
	l.begun(t, 0, 2)
	before := w.info(t, "w")
	w.refusedName(t, "w", first.Process.Pid)
	if after := w.info(t, "w"); after.Incarnation != before.Incarnation || after.PID != first.Process.Pid {
		t.Errorf("the name is of incarnation %d, process %d; was %d, %d", after.Incarnation, after.PID, before.Incarnation, before.PID)
	}
	l.release(t)
	for _, id := range ids {
		checkFields(t, w.archived(t, id, sm.Succeeded), map[string]string{
			"round": "0", "losses": "-", "releases": "-", "0:worker": "w", "0:output": "round 0 by w\n",
		})
	}
	if first.Ended() {
		t.Error("the first worker has ended")
	}
	w.sound(t)
}

// A16: the same name on the same host takes over at once after a kill -9, long
// before the lease of 15 s is over. It releases the former tasks before its first
// claim, and nothing of them lives on.
func TestNameComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.archiver(t)
	spec, l := w.beating(t)
	ids := w.open(t, times(3, spec)...)
	first := w.worker(t, "w", "slots=2")
	l.begun(t, 0, 2)
	at := w.kill(t, first)
	second := w.worker(t, "w", "slots=2")
	waiting := storetest.Stamps(w.await(t, ids[2], sm.Running), 0)["running"]
	within(t, "from the death of a worker to the first claim of its successor", at, waiting, 4*sm.Second)
	l.release(t)
	for _, id := range ids[:2] {
		task := w.archived(t, id, sm.Succeeded)
		checkFields(t, task, map[string]string{"losses": "1", "round": "1", "0:executed": "-", "1:output": "round 1 by w\n"})
		if storetest.Stamps(task, 1)["open"] > waiting {
			t.Errorf("task %d was released after the first claim of the successor", id)
		}
	}
	second.Says(t, "took back a task of an earlier incarnation of this worker")
	checkFields(t, w.archived(t, ids[2], sm.Succeeded), map[string]string{"losses": "-", "round": "0"})
	l.noOverlap(t)
	w.sound(t)
}

// A16: whether a worker of another host, or container, is dead cannot be seen from
// here. Its name is refused while it lives, and free when its lease is over.
func TestNameElsewhere(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("making a PID namespace needs root")
	}
	w := newWorld(t)
	w.archiver(t)
	const lease = 6 * sm.Second
	w.serverWith(t, "server", "server.worker_timeout=6")
	spec, l := w.beating(t)
	id := w.open(t, spec)[0]
	args := append([]string{"--pid", "--fork", "--kill-child", "--mount-proc", program(t, "tdf-worker")}, w.workerArgs("w")...)
	command := exec.Command("unshare", args...)
	command.Dir = w.own(t, "container")
	container := w.start(t, command)
	l.begun(t, 0, 1)
	w.refusedName(t, "w", 1)
	container.Kill(t)
	second := w.worker(t, "w")
	second.Says(t, "waiting whether it is still alive")
	last := task.Stamp(w.info(t, "w").Heartbeat)
	l.begun(t, 1, 1)
	if started := task.Stamp(w.info(t, "w").Started); started < last.Add(lease) {
		t.Errorf("took the name %s s after the last heartbeat, before the lease of %s s was over", started.Sub(last).Text(), lease.Text())
	} else {
		within(t, "from the last heartbeat to the take-over", last, started, lease+2*sm.Second)
	}
	l.release(t)
	checkFields(t, w.archived(t, id, sm.Succeeded), map[string]string{"losses": "1", "round": "1", "1:output": "round 1 by w\n"})
	l.noOverlap(t)
	w.sound(t)
}
