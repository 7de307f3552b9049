package acceptance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// D08, by Disbatch's own policy: a worker is killed with two tasks running that must
// not be run again. The next one of its name declares them orphaned (-6) before it
// claims anything. TestNameComesBack is the same by the default policy, and D09 is
// TestWorkerKilled.
func TestOrphansBeforeClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.archiver(t)
	w.queue(t, "once", "default_max_losses=0")
	spec, l := w.waiting(t, "once", "once")
	ids := w.open(t, times(3, spec)...)
	first := w.node(t, "n1", "slots=2")
	l.begun(t, 0, 2)
	w.kill(t, first)
	w.node(t, "n1", "slots=2")
	claimed := storetest.Stamps(w.await(t, ids[2], sm.Running), 0)["running"]
	for _, id := range ids[:2] {
		task := w.archived(t, id, sm.Orphaned)
		checkFields(t, task, map[string]string{"round": "0", "losses": "1", "max_losses": "0", "1:open": "-"})
		if orphaned := storetest.Stamps(task, 0)["orphaned"]; orphaned > claimed {
			t.Errorf("task %d was orphaned at %s, after the next claim at %s", id, orphaned.Text(), claimed.Text())
		}
		if n := w.status(t, id); n != -6 {
			t.Errorf("status of task %d is %d", id, n)
		}
	}
	l.release(t)
	w.archived(t, ids[2], sm.Succeeded)
	w.sound(t)
}

// D11: the registry has what Disbatch's registration has, for foreign eyes too.
func TestRegistrationDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.node(t, "n1", "classes=render=2.1,index")
	wait.Eventually(t, patience, func() bool { return w.Raw.Exists(t.Context(), w.Key("worker:n1")).Val() == 1 }, "the worker does not register")
	doc := w.Raw.HGetAll(t.Context(), w.Key("worker:n1")).Val()
	out, _, _ := run(t, w.dir, program(t, "tdf-worker"), "--version")
	if doc["version"] == "" || !strings.Contains(out, doc["version"]) || doc["spec_version"] != "1.1" || doc["node"] != "n1" {
		t.Errorf("the registration is %v; tdf-worker is %s", doc, out)
	}
	var types []map[string]string
	err := json.Unmarshal([]byte(doc["queuetypes"]), &types)
	if want := "[map[class:render version:2.1] map[class:index version:]]"; err != nil || fmt.Sprint(types) != want {
		t.Errorf("queuetypes are %v, %v; want %s", types, err, want)
	}
}

// D11: a queue of a class that no worker offers is left alone, others are served;
// so are queues without a class.
func TestUnknownClassIsIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server(t)
	w.queue(t, "known", "class=render")
	w.queue(t, "unknown", "class=audio")
	p := w.script(t, "p", "true")
	unknown := w.submitted(t, p, "--queue", "unknown")
	n1 := w.node(t, "n1", "classes=render=2.1")
	for _, queue := range []string{"known", "default", "known"} {
		w.await(t, w.submitted(t, p, "--queue", queue), sm.Succeeded)
	}
	checkFields(t, w.Task(t, unknown), map[string]string{"state": "open", "0:worker": "-"})
	if strings.Contains(n1.Log.String(), `"level":"error"`) {
		t.Error("the worker complains of a queue that is not its own")
	}
	w.node(t, "n2", "classes=audio")
	checkFields(t, w.await(t, unknown, sm.Succeeded), map[string]string{"0:node": "n2"})
}

// D10: the heartbeat comes again and again, has the right process, and says for each
// queue how many threads there are, of which the idle and the busy ones are all.
func TestHeartbeatDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serverWith(t, "server", shortLeaseSet)
	w.queue(t, "narrow", "maxthreads=2", "class=render")
	w.queue(t, "wide")
	spec, l := w.waiting(t, "all", "narrow")
	wide := spec
	wide.Queue = "wide"
	w.open(t, spec, spec, spec, wide)
	n1 := w.node(t, "n1", "slots=4", "classes=render")
	l.begun(t, 0, 3)
	const want = "default * 4 4 0, narrow render 2 0 2, wide * 4 3 1"
	wait.Eventually(t, patience, func() bool { return w.use(t, "n1") == want }, "the heartbeat says %q, want %q",
		late(func() string { return w.use(t, "n1") }), want)
	seen := w.info(t, "n1")
	if seen.PID != n1.Process.Pid || seen.Busy != 3 {
		t.Errorf("process %d with %d busy slots; it is %d with 3", seen.PID, seen.Busy, n1.Process.Pid)
	}
	last := w.beat(t, "n1", n1.Process.Pid)
	for range 2 { // three times in a lease
		last = w.nextBeat(t, "n1", n1.Process.Pid, last)
	}
	l.release(t)
	const rest = "default * 4 4 0, narrow render 2 2 0, wide * 4 4 0"
	wait.Eventually(t, patience, func() bool { return w.use(t, "n1") == rest }, "the heartbeat does not say that all is idle")
}

// beat reads the document of a heartbeat as a stranger does, and returns its date. The
// process is the worker's.
func (w *world) beat(t *testing.T, worker string, pid int) sm.Time {
	t.Helper()
	var doc struct {
		DateTime time.Time `json:"datetime"`
		PID      int       `json:"pid"`
	}
	text, err := w.Raw.HGet(t.Context(), w.Key("worker:"+worker), "heartbeat").Result()
	if err == nil {
		err = json.Unmarshal([]byte(text), &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	if doc.PID != pid {
		t.Errorf("the heartbeat is %s, want one by process %d", text, pid)
	}
	return sm.Time(doc.DateTime.UnixMicro())
}

// nextBeat waits for another document than the last one, at most a lease. Its date is the
// second in which it came.
func (w *world) nextBeat(t *testing.T, worker string, pid int, last sm.Time) sm.Time {
	t.Helper()
	var before, next sm.Time
	wait.Eventually(t, patience, func() bool {
		at := w.redisNow(t)
		if next = w.beat(t, worker, pid); next == last {
			before = at
		}
		return next != last
	}, "the heartbeat keeps its date")
	if after := w.redisNow(t); next.Add(sm.Second) <= before || next > after {
		t.Errorf("a heartbeat that came between %s and %s says %s", before.Text(), after.Text(), next.Text())
	}
	within(t, "from one heartbeat to the next, within the lease,", last, next, shortLease)
	return next
}

// use is what the heartbeat of a worker says of the queues: name, class, threads,
// idle and processing.
func (w *world) use(t *testing.T, worker string) string {
	t.Helper()
	var parts []string
	queues := w.info(t, worker).Queues
	slices.SortFunc(queues, func(a, b task.QueueUse) int { return strings.Compare(a.Queue, b.Queue) })
	for _, q := range queues {
		parts = append(parts, fmt.Sprint(q.Queue, " ", q.Class, " ", q.Threads, q.Idle, q.Processing))
		if q.Idle+q.Processing != q.Threads {
			t.Errorf("queue %s: %d idle and %d busy of %d threads", q.Queue, q.Idle, q.Processing, q.Threads)
		}
	}
	return strings.Join(parts, ", ")
}

// D17: a name that cannot be a node's is refused, by workers and by tdf-manager: it
// would not fit into a list of nodes, or not into a key.
func TestNodeNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"a b", "a,b", "a/b", `a\b`, "..", strings.Repeat("n", 129)} {
		_, stderr, code := run(t, w.dir, append([]string{program(t, "tdf-worker"), "--check"}, w.workerArgs("w", "node="+name)...)...)
		if code != cli.ExitUsage {
			t.Errorf("a worker of node %q ended with %d", name, code)
		}
		contains(t, "the refusal", stderr, "[worker] node", "write for example node-1")
		if strings.ContainsAny(name, ", ") {
			continue // a list of two
		}
		_, stderr = w.manage(t, cli.ExitUsage, "queue", "add", "q", "nodes_pin="+name)
		contains(t, "the refusal", stderr, "nodes_pin", strconv.Quote(name))
		_, stderr = w.manage(t, cli.ExitUsage, "node", "set", name, "maxthreads=1")
		contains(t, "the refusal", stderr, strconv.Quote(name))
	}
	for _, name := range []string{"n1", "node_12", "1abc", "a-b", "rack-3.example.org", strings.Repeat("n", 128)} {
		if _, stderr, code := run(t, w.dir, append([]string{program(t, "tdf-worker"), "--check"}, w.workerArgs("w", "node="+name)...)...); code != 0 {
			t.Errorf("a worker of node %q ended with %d: %s", name, code, stderr)
		}
	}
}

// D17: a name that is no node id of Disbatch's specification is warned of.
func TestNodeNameOfDisbatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, warned := range map[string]bool{"mig01": false, "1abc": true, "a-b": true, "abcdefghi": true} {
		d := w.worker(t, "worker-"+name, "node="+name)
		d.Says(t, `"message":"registered"`)
		if strings.Contains(d.Log.String(), "no node id of Disbatch") != warned {
			t.Errorf("node %q: warned %v", name, !warned)
		}
	}
}
