package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// shortLease is the worker_timeout of tests that wait for its end; shortLeaseSet sets
// it. It is as short as a worker can keep it that starts with many others.
const (
	shortLease    = 5 * sm.Second
	shortLeaseSet = "server.worker_timeout=5"
)

// containments are the layers of containment, each to be had here as root.
var containments = []string{"pidns", "cgroup", "group"}

// leasing starts a server with the short lease and other settings, and the manager.
func (w *world) leasing(t *testing.T, settings ...string) (server *daemon) {
	t.Helper()
	w.archiver(t)
	server = w.serverWith(t, "server", append([]string{shortLeaseSet}, settings...)...)
	w.leasePublished(t)
	return server
}

// leasePublished waits until the server says how long a lease is: who registers before that has the lease of the defaults.
func (w *world) leasePublished(t *testing.T) {
	t.Helper()
	wait.Eventually(t, patience, func() bool {
		return w.Raw.HExists(t.Context(), w.Key("meta"), "worker_timeout").Val()
	}, "the server does not say how long a lease is")
}

func (w *world) serverWith(t *testing.T, name string, settings ...string) *daemon {
	t.Helper()
	args := []string{name, w.cfg}
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	return w.launch(t, name, "tdf-server", args...)
}

// kill ends a program with SIGKILL and returns the time of it on Redis' clock.
func (w *world) kill(t *testing.T, d *daemon) sm.Time {
	t.Helper()
	at := w.redisNow(t)
	d.Kill(t)
	return at
}

// leave ends a program in good order.
func (w *world) leave(t *testing.T, d *daemon) {
	t.Helper()
	d.Signal(t, syscall.SIGTERM)
	d.Finish(t)
}

// processes are those of the programs that the worker has started.
func (w *world) processes(worker string) []int {
	mine := hosttest.ProcessesWith("TDF_NAMESPACE=" + w.Namespace)
	return slices.DeleteFunc(hosttest.ProcessesWith("TDF_WORKER="+worker), func(pid int) bool { return !slices.Contains(mine, pid) })
}

// noneLeft waits until nothing of the worker's programs lives any more (I-NOPROC).
func (w *world) noneLeft(t *testing.T, worker string) {
	t.Helper()
	wait.Eventually(t, 2*time.Second, func() bool { return len(w.processes(worker)) == 0 },
		"programs of worker %s are left: %s", worker, late(func() string { return fmt.Sprint(w.processes(worker)) }))
}

// reopened waits until the task has a second round and returns when that was opened.
func (w *world) reopened(t *testing.T, id int64) sm.Time {
	t.Helper()
	var opened sm.Time
	wait.Eventually(t, patience, func() bool {
		opened = storetest.Stamps(w.Task(t, id), 1)["open"]
		return opened != 0
	}, "task %d is not opened again", id)
	return opened
}

// within checks that something happened at most a time span after another, not
// counting the time in which the machine was busy.
func within(t *testing.T, what string, from, to sm.Time, most sm.Duration) {
	t.Helper()
	t.Logf("%s: %s s", what, to.Sub(from).Text())
	wait.Within(t, what, time.UnixMicro(int64(from)), time.UnixMicro(int64(to)), time.Duration(most)*time.Microsecond)
}

// passed waits until so much time has passed on Redis' clock.
func (w *world) passed(t *testing.T, from sm.Time, d sm.Duration) {
	t.Helper()
	wait.Eventually(t, time.Minute, func() bool { return w.redisNow(t) >= from.Add(d) }, "%s s do not pass", d.Text())
}

// ledger is a file outside TDF in which programs say themselves what they do, a
// line each: task, round, worker, what, and the seconds since the boot.
type ledger struct{ path string }

// beats appends to the ledger $1 all the time until it is released.
const beats = `say() { read up _ </proc/uptime; echo "$TDF_TASK_ID $TDF_ROUND $TDF_WORKER $1 $up" >>"$ledger"; }
ledger=$1; say start
while [ ! -e "$ledger.go" ] && [ ! -e "$ledger.$TDF_TASK_ID.go" ]; do say beat; sleep 0.05; done
say end; echo "round $TDF_ROUND by $TDF_WORKER"`

// beating makes a ledger and a task whose program writes to it.
func (w *world) beating(t *testing.T) (task.Spec, ledger) {
	t.Helper()
	l := ledger{w.file(t, "ledger", "", 0o666)}
	spec := w.script(t, "beats", beats)
	spec.Input = l.path
	return spec, l
}

// release lets the programs of the given tasks come to their end, of all without any.
func (l ledger) release(t *testing.T, ids ...int64) {
	t.Helper()
	names := []string{l.path + ".go"}
	if len(ids) > 0 {
		names = nil
	}
	for _, id := range ids {
		names = append(names, l.path+"."+id2text(id)+".go")
	}
	for _, name := range names {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// happening is one line of a ledger.
type happening struct {
	task         int64
	round        int
	worker, what string
}

func (l ledger) entries(t *testing.T) []happening {
	t.Helper()
	text, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	var all []happening
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 5 {
			t.Fatalf("%s: line %q", filepath.Base(l.path), line)
		}
		id, err := strconv.ParseInt(f[0], 10, 64)
		round, err2 := strconv.Atoi(f[1])
		if err != nil || err2 != nil {
			t.Fatalf("%s: line %q", filepath.Base(l.path), line)
		}
		all = append(all, happening{id, round, f[2], f[3]})
	}
	return all
}

// count is how many lines say that of the round.
func (l ledger) count(t *testing.T, round int, what string) int {
	t.Helper()
	n := 0
	for _, e := range l.entries(t) {
		if e.round == round && e.what == what {
			n++
		}
	}
	return n
}

// begun waits until that many tasks have begun the round.
func (l ledger) begun(t *testing.T, round, tasks int) {
	t.Helper()
	wait.Eventually(t, patience, func() bool { return l.count(t, round, "start") == tasks },
		"round %d of %d tasks is not begun", round, tasks)
}

// noOverlap checks that no round of a task did anything once the next had begun,
// and that each began once.
func (l ledger) noOverlap(t *testing.T) {
	t.Helper()
	last := map[int64]happening{}
	for i, e := range l.entries(t) {
		before, seen := last[e.task]
		switch {
		case e.what == "start" && seen && e.round <= before.round:
			t.Errorf("line %d: round %d of task %d begins after round %d", i+1, e.round, e.task, before.round)
		case e.what != "start" && e.round != before.round:
			t.Errorf("line %d: round %d of task %d at worker %s lives on while round %d runs at worker %s",
				i+1, e.round, e.task, e.worker, before.round, before.worker)
		}
		if e.what == "start" {
			last[e.task] = e
		}
	}
}

// lostOnce checks the record of a task that lost its first worker and succeeded
// at another.
func (w *world) lostOnce(t *testing.T, id int64, first, second string) *tasks.TaskHeader {
	t.Helper()
	task := w.archived(t, id, sm.Succeeded)
	checkFields(t, task, map[string]string{
		"losses": "1", "round": "1", "fails": "0", "timeouts": "0", "releases": "-",
		"0:worker": first, "0:output": "-", "0:executed": "-", "0:exit_code": "-",
		"1:worker": second, "1:output": "round 1 by " + second + "\n", "1:error": "",
	})
	return task
}

// times repeats a spec.
func times(n int, spec task.Spec) []task.Spec { return slices.Repeat([]task.Spec{spec}, n) }

// info is what the registry says of a worker.
func (w *world) info(t *testing.T, name string) task.Worker {
	t.Helper()
	info, _, err := w.Store.Worker(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
