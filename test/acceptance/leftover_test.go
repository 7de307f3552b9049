package acceptance

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// A worker and its shim are killed at the same moment, so that nobody is left to
// kill what runs: the next start under the same name does, removes the private
// directories, and takes the task back before its first claim.
func TestLeftOvers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "containment=group", "slots=1")
	signs := w.own(t, "signs")
	spec := w.script(t, "setsid", escapes["setsid"]+`
touch "$TDF_WORKDIR/data"
until [ -e "$1/setsid" ]; do sleep 0.02; done
[ $TDF_ROUND = 1 ] || sleep 300`)
	spec.Input = signs
	id := w.open(t, spec)[0]
	first := w.worker(t, "w")
	t.Cleanup(func() { // a safety net for a failing test
		for _, pid := range w.running() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	made(t, filepath.Join(signs, "setsid"))
	wait.Eventually(t, patience, func() bool { return len(w.privates(t)) > 0 }, "the program has written nothing")
	w.killAtOnce(t, first)
	if len(w.running()) == 0 || len(w.privates(t)) == 0 {
		t.Fatalf("left are %v and %v: the test would prove nothing", w.running(), w.privates(t))
	}
	before := w.running()
	second := w.worker(t, "w")
	second.Says(t, "killed what an earlier incarnation of this worker has left")
	second.Says(t, "took back a task of an earlier incarnation")
	for _, pid := range before {
		wait.Eventually(t, patience, func() bool { return unix.Kill(pid, 0) != nil || zombie(pid) }, "process %d is left", pid)
	}
	task := w.await(t, id, sm.Executed)
	checkFields(t, task, map[string]string{"round": "1", "losses": "1", "fails": "0", "1:exit_code": "0"})
	wait.Eventually(t, patience, func() bool { return len(w.privates(t)) == 0 }, "private directories are left")
}

// killAtOnce kills a worker and its shims so that none of them sees another die.
func (w *world) killAtOnce(t *testing.T, d *daemon) {
	t.Helper()
	shims := shimsOf(t, d)
	if len(shims) == 0 {
		t.Fatal("no shim is seen")
	}
	d.Signal(t, syscall.SIGSTOP)
	for _, pid := range shims {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		wait.Eventually(t, patience, func() bool { return zombie(pid) }, "shim %d does not die", pid)
	}
	d.Signal(t, syscall.SIGKILL)
	wait.Closed(t, patience, d.Done, "the worker does not die")
}

// privates are the private directories of this world's rounds; one that holds the program
// alone, which a slot keeps for its next round, is not one.
func (w *world) privates(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(w.private, "tdf.*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(name string) bool {
		entries, err := os.ReadDir(name)
		return err == nil && (len(entries) == 0 || len(entries) == 1 && entries[0].Name() == "run.sh") // as for the next round
	})
}

// zombie reports whether a process is dead but not yet reaped.
func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + id2text(int64(pid)) + "/stat")
	if err != nil {
		return true
	}
	// While other threads of it are left, its files may be open still.
	threads, err := os.ReadDir("/proc/" + id2text(int64(pid)) + "/task")
	return err != nil || strings.Contains(string(stat), ") Z ") && len(threads) == 1
}
