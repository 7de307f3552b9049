package acceptance

import (
	"slices"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// still is how long a test looks whether something happens that must not. What
// makes it happen, if it does, takes some milliseconds.
const still = 300 * time.Millisecond

// stays checks that no further rounds begin.
func (l ledger) stays(t *testing.T, tasks int) {
	t.Helper()
	wait.Never(t, still, func() bool { return l.count(t, 0, "start") > tasks }, "more than %d tasks run", tasks)
}

// D02: maxthreads holds per node and queue, however many slots a node has.
func TestQueueMaxthreads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.archiver(t)
	w.queue(t, "q", "maxthreads=2")
	spec, l := w.waiting(t, "q", "q")
	ids := w.open(t, times(10, spec)...)
	w.node(t, "n1", "slots=5")
	l.begun(t, 0, 2)
	l.stays(t, 2)
	w.node(t, "n2", "slots=5")
	l.begun(t, 0, 4)
	l.stays(t, 4)
	l.release(t)
	tasks := w.ended(t, ids, sm.Succeeded)
	if a, b, all := most(t, on("n1", tasks), 0), most(t, on("n2", tasks), 0), most(t, tasks, 0); a != 2 || b != 2 || all != 4 {
		t.Errorf("at most %d ran on n1, %d on n2, %d in all; want 2, 2, 4", a, b, all)
	}
	w.sound(t)
}

// D03: the cap of a node holds over all queues; none is no cap; with 0 nothing new
// begins and what runs comes to its end. The cap of an operator counts before that
// of the configuration.
func TestNodeCap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.archiver(t)
	spec, l := w.waiting(t, "all", "a")
	other := spec
	other.Queue = "b"
	w.queue(t, "a", "maxthreads=5")
	w.queue(t, "b", "maxthreads=5")
	ids := w.open(t, slices.Concat(times(6, spec), times(6, other))...)
	w.node(t, "n1", "slots=11", "maxthreads=3")
	l.begun(t, 0, 3)
	l.stays(t, 3)
	w.manage(t, 0, "node", "set", "n1", "maxthreads=null") // Disbatch's word for none
	l.begun(t, 0, 10)
	l.stays(t, 10)
	contains(t, "node show", w.text(t, "node", "show", "n1"), "unlimited (set)")
	w.manage(t, 0, "node", "set", "n1", "maxthreads=0")
	zero := w.redisNow(t)
	l.release(t)
	wait.Eventually(t, patience, func() bool { return l.count(t, 0, "end") == 10 }, "what ran does not come to its end")
	wait.Eventually(t, patience, func() bool { return w.info(t, "n1").Busy == 0 }, "the worker does not become idle")
	l.stays(t, 10)
	w.manage(t, 0, "node", "set", "n1", "maxthreads=") // the worker's configuration again
	tasks := w.ended(t, ids, sm.Succeeded)
	if n := most(t, tasks, zero); n > 3 {
		t.Errorf("%d tasks ran at a time under a cap of 3", n)
	}
	for _, task := range tasks {
		checkFields(t, task, map[string]string{"round": "0", "0:error": ""})
	}
	w.sound(t)
}

// text is what a verb of tdf-manager prints.
func (w *world) text(t *testing.T, args ...string) string {
	t.Helper()
	out, _ := w.manage(t, 0, args...)
	return out
}

// D04: a limit that is raised works at once; one that is lowered kills nothing, and
// counts for what is claimed from then on.
func TestLimitAtRunTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.archiver(t)
	w.queue(t, "q", "maxthreads=1")
	spec, l := w.waiting(t, "q", "q")
	ids := w.open(t, times(8, spec)...)
	w.node(t, "n1", "slots=5")
	l.begun(t, 0, 1)
	l.stays(t, 1)
	m := w.project(t)
	raised := w.redisNow(t)
	if _, err := m.SetQueue(t.Context(), "q", func(q *task.QueueSpec) error { return q.Set("maxthreads", "3") }, manager.ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	l.begun(t, 0, 3)
	within(t, "from raising a limit to the last claim", raised, storetest.Stamps(w.Task(t, ids[2]), 0)["running"], sm.Second)
	if q, err := m.SetQueue(t.Context(), "q", func(q *task.QueueSpec) error { return q.Set("maxthreads", "1") }, manager.ChangeOptions{}); err != nil || q.Running != 3 {
		t.Fatalf("%d tasks run after the limit was lowered, %v", q.Running, err)
	}
	lowered := w.redisNow(t)
	l.release(t, ids[0])
	w.archived(t, ids[0], sm.Succeeded)
	l.stays(t, 3) // two are left, which is one too many for another
	l.release(t)
	tasks := w.ended(t, ids, sm.Succeeded)
	if before, after := most(t, tasks, 0), most(t, tasks, lowered); before != 3 || after != 1 {
		t.Errorf("at most %d ran at a time, %d since the limit was lowered; want 3, 1", before, after)
	}
	for _, task := range tasks {
		checkFields(t, task, map[string]string{"round": "0", "releases": "-", "losses": "-", "fails": "0"})
	}
	w.sound(t)
}

// A place that becomes free wakes the worker that waits for it within 200 ms, of
// another host too, although others are idle beside it: those have nothing to do.
func TestFreedLimitWakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		queue []string
		nodes [2]string // of the workers a and b
		cap   string
	}{
		"in the fleet":        {[]string{"threads=1"}, [2]string{"n1", "n2"}, "none"},
		"of a queue, on node": {[]string{"maxthreads=1"}, [2]string{"n", "n"}, "none"},
		"on the node":         {nil, [2]string{"n", "n"}, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "drain_timeout=1")
			w.server(t)
			w.queue(t, "q", c.queue...)
			for i, env := range []string{"a", "b"} {
				w.worker(t, env, "env="+env, "node="+c.nodes[i], "maxthreads="+c.cap, "slots=2").Says(t, "no open task to claim")
			}
			gaps := w.handOver(t)
			slices.Sort(gaps)
			t.Logf("from the end of a round to the claim of the other worker: %v µs", gaps)
			if gaps[0] < 0 {
				t.Errorf("woken after %v µs, before a place was free", gaps)
			}
			now := w.redisNow(t)
			within(t, "in most cases, from the end of a round to the claim of the other worker", now.Add(-gaps[len(gaps)/2]), now, sm.Second/5)
		})
	}
}

// handOver lets the workers of env a and b take turns at a queue with one place, and
// returns how long each of them waited for it after the other's end.
func (w *world) handOver(t *testing.T) []sm.Duration {
	t.Helper()
	spec, l := w.waiting(t, "q", "q")
	var gaps []sm.Duration
	previous := int64(0)
	for i := range 6 {
		spec.Env = []string{"a", "b"}[i%2]
		id := w.open(t, spec)[0]
		if previous != 0 {
			l.stays(t, i)
			l.release(t, previous)
		}
		l.begun(t, 0, i+1)
		task := w.Task(t, id)
		checkFields(t, task, map[string]string{"0:worker": spec.Env})
		if previous != 0 {
			ended := storetest.Stamps(w.await(t, previous, sm.Succeeded), 0)["executed"]
			gaps = append(gaps, storetest.Stamps(task, 0)["running"].Sub(ended))
		}
		previous = id
	}
	l.release(t)
	w.await(t, previous, sm.Succeeded)
	return gaps
}
