package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// starve leaves a program no further descriptors, and feed as many as it had.
func starve(t *testing.T, d *daemon) (feed func()) {
	t.Helper()
	open, err := os.ReadDir("/proc/" + strconv.Itoa(d.Process.Pid) + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	var before unix.Rlimit
	limit := func(now, old *unix.Rlimit) {
		if err := unix.Prlimit(d.Process.Pid, unix.RLIMIT_NOFILE, now, old); err != nil {
			t.Fatal(err)
		}
	}
	limit(nil, &before)
	limit(&unix.Rlimit{Cur: uint64(len(open)), Max: before.Max}, nil)
	return func() { limit(&before, nil) }
}

// A worker that runs out of descriptors hands its task back, rests, and lives: that
// costs the task nothing. Three times in a row do, then each is a fault.
func TestOutOfDescriptors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "slots=1")
	_, worker, _ := w.all(t)
	w.archived(t, w.open(t, w.script(t, "warm", "true"))[0], sm.Succeeded)
	feed := starve(t, worker)
	spec := w.script(t, "p", "echo fine")
	spec.MaxFaults = task.AtMost(0)
	doomed := w.archived(t, w.open(t, spec)[0], sm.Failed)
	checkFields(t, doomed, map[string]string{
		"fails": "0", "faults": "1", "losses": "-", "releases": "3", "round": "3",
		"0:class": "shortage", "3:class": "shortage",
	})
	contains(t, "the error", doomed.Fields["3:error"], "this host cannot run programs", "too many open files")
	spec.MaxFaults = ""
	spared := w.open(t, spec)[0]
	wait.Eventually(t, patience, func() bool { return w.Task(t, spared).Releases > 0 }, "the task is not handed back")
	feed()
	checkFields(t, w.archived(t, spared, sm.Succeeded), map[string]string{"fails": "0", "losses": "-"})
	if worker.Ended() {
		t.Error("the worker has ended")
	}
	w.sound(t)
}

// A worker that can start no process and no thread any more lives, hands its tasks
// back, and goes on when it can.
func TestOutOfProcesses(t *testing.T) {
	t.Parallel()
	needRoot(t, "become a user of whom nothing else runs")
	w := worldOn(t, reachable(t, redistest.Shared(t)), "slots=4", "containment=group")
	w.server(t)
	w.archiver(t)
	const most = 80
	own := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(1<<20 + os.Getpid()), Gid: nobody}}
	w.asUser(t, &exec.Cmd{})
	cmd := exec.Command("sh", append([]string{"-c", `ulimit -u "$0" 2>/dev/null || ulimit -p "$0"; exec "$@"`, strconv.Itoa(most), program(t, "tdf-worker")}, w.workerArgs("w")...)...)
	cmd.Dir, cmd.SysProcAttr = w.own(t, "w"), own
	for _, name := range []string{w.cfg, cmd.Dir} {
		if err := os.Chown(name, int(own.Credential.Uid), nobody); err != nil {
			t.Fatal(err)
		}
	}
	worker := w.start(t, cmd)
	w.archived(t, w.open(t, w.script(t, "warm", "true"))[0], sm.Succeeded)
	crowd := make([]*exec.Cmd, most)
	for i := range crowd {
		crowd[i] = exec.Command("sleep", "300")
		crowd[i].SysProcAttr = own
		if err := crowd[i].Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = crowd[i].Process.Kill(), crowd[i].Wait() })
	}
	ids := w.open(t, times(8, w.script(t, "p", "echo fine"))...)
	wait.Eventually(t, patience, func() bool { return w.Task(t, ids[0]).Releases > 0 || worker.Ended() }, "no task is handed back")
	threads, _ := filepath.Glob("/proc/" + strconv.Itoa(worker.Process.Pid) + "/task/*")
	t.Logf("the worker has %d threads", len(threads))
	w.passed(t, w.redisNow(t), sm.Second)
	if worker.Ended() {
		t.Fatal("the worker has ended")
	}
	for _, c := range crowd {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	for _, id := range ids {
		checkFields(t, w.archived(t, id, sm.Succeeded), map[string]string{"fails": "0", "losses": "-"})
	}
}
