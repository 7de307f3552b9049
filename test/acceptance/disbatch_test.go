package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// disbatchClient speaks to the interface of Disbatch.
type disbatchClient struct{ flockClient }

// disbatchTask, disbatchQueue and disbatchNode are the documents of Disbatch.
type (
	disbatchTask struct {
		ID     int64           `json:"id"`
		Queue  string          `json:"queue"`
		CTime  float64         `json:"ctime"`
		MTime  float64         `json:"mtime"`
		Params json.RawMessage `json:"params"`
		Stdout string          `json:"stdout"`
		Stderr string          `json:"stderr"`
		Status int             `json:"status"`
		Node   *string         `json:"node"`
	}
	disbatchQueue struct {
		ID         string   `json:"id"`
		Plugin     string   `json:"plugin"`
		Class      string   `json:"class"`
		Threads    *int     `json:"threads"`
		MaxThreads *int     `json:"maxthreads"`
		Pin        []string `json:"nodes_pin"`
		Queued     int      `json:"queued"`
		Running    int      `json:"running"`
		Completed  int      `json:"completed"`
	}
	disbatchNode struct {
		Node        string              `json:"node"`
		MaxThreads  *int                `json:"maxthreads"`
		Version     string              `json:"version"`
		SpecVersion string              `json:"spec_version"`
		QueueTypes  []map[string]string `json:"queuetypes"`
		Heartbeat   struct {
			DateTime time.Time `json:"datetime"`
			PID      int       `json:"pid"`
			Queues   []struct {
				Queue, Class              string
				Threads, Idle, Processing int
			} `json:"queues"`
		} `json:"heartbeat"`
	}
)

// disbatchServer starts a server with the interface of Disbatch, and returns who speaks to it with a token for operators.
func (w *world) disbatchServer(t *testing.T, set ...string) (*daemon, disbatchClient) {
	t.Helper()
	d, url := w.httpServer(t, append([]string{"http.listen=127.0.0.1:0", "http.disbatch=true"}, set...)...)
	return d, disbatchClient{w.flockClient(t, url, "operate")}
}

// plugin starts a worker on a node, both of that name, whose class demo runs the program.
func (w *world) plugin(t *testing.T, node, program string, set ...string) *daemon {
	t.Helper()
	w.file(t, filepath.Join("programs", "demo", "run.sh"), "#!/bin/sh\n"+program+"\n", 0o755)
	d := w.node(t, node, append([]string{"classes=demo=1.1", "program_dir=" + filepath.Join(w.dir, "programs")}, set...)...)
	d.Says(t, `"message":"registered"`)
	return d
}

// ask sends a request, again while there are too many, and reads the answer into a value.
func (c disbatchClient) ask(t *testing.T, want int, method, path, body string, into any) {
	t.Helper()
	var code int
	var text []byte
	wait.Eventually(t, patience, func() bool {
		var err error
		if code, _, text, err = c.reply(t.Context(), method, path, body); err != nil {
			t.Fatal(err)
		}
		return code != http.StatusTooManyRequests
	}, "it is asked too often")
	if code != want {
		t.Fatalf("%s %s %s: %d, want %d\n%s", method, path, body, code, want, text)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s %s: %v\n%s", method, path, err, text)
	}
}

// refused checks that a request is refused with a reason that names the words.
func (c disbatchClient) refused(t *testing.T, want int, method, path, body string, words ...string) {
	t.Helper()
	var refusal struct{ Error string }
	c.ask(t, want, method, path, body, &refusal)
	contains(t, "the refusal of "+method+" "+path+" "+body, refusal.Error, append([]string{" "}, words...)...)
}

// opens makes tasks in a queue, one for each text of parameters.
func (c disbatchClient) opens(t *testing.T, queue string, params ...string) (ids []int64) {
	t.Helper()
	var opened struct{ IDs []int64 }
	c.ask(t, http.StatusCreated, http.MethodPost, "/tasks/"+queue, "["+strings.Join(params, ",")+"]", &opened)
	if len(opened.IDs) != len(params) {
		t.Fatalf("%d tasks are %v", len(params), opened.IDs)
	}
	return opened.IDs
}

// is reads a task.
func (c disbatchClient) is(t *testing.T, id int64) disbatchTask {
	t.Helper()
	var found []disbatchTask
	c.ask(t, http.StatusOK, http.MethodPost, "/tasks/search", fmt.Sprintf(`{"filter":{"id":%d},"terse":false}`, id), &found)
	if len(found) != 1 || found[0].ID != id {
		t.Fatalf("task %d is %+v", id, found)
	}
	return found[0]
}

// becomes waits until a task has the status.
func (c disbatchClient) becomes(t *testing.T, id int64, status int) (is disbatchTask) {
	t.Helper()
	wait.Eventually(t, patience, func() bool { is = c.is(t, id); return is.Status == status }, "task %d does not get the status %d: %s",
		id, status, late(func() string { return fmt.Sprintf("%+v", is) }))
	return is
}

// count is how many tasks fit a filter.
func (c disbatchClient) count(t *testing.T, filter string) int {
	t.Helper()
	var found struct{ Count int }
	c.ask(t, http.StatusOK, http.MethodPost, "/tasks/search", `{"count":true,"filter":`+filter+`}`, &found)
	return found.Count
}

func (c disbatchClient) queue(t *testing.T, name string) (q disbatchQueue) {
	t.Helper()
	c.ask(t, http.StatusOK, http.MethodGet, "/queues/"+name, "", &q)
	return q
}

func (c disbatchClient) node(t *testing.T, name string) (n disbatchNode) {
	t.Helper()
	c.ask(t, http.StatusOK, http.MethodGet, "/nodes/"+name, "", &n)
	return n
}

// set changes a queue or a node.
func (c disbatchClient) set(t *testing.T, path, body string) {
	t.Helper()
	c.ask(t, http.StatusOK, http.MethodPost, path, body, nil)
}

// add makes a queue of the plugin demo.
func (c disbatchClient) add(t *testing.T, name, more string) {
	t.Helper()
	c.ask(t, http.StatusCreated, http.MethodPost, "/queues", fmt.Sprintf(`{"name":%q,"plugin":"demo"%s}`, name, more), nil)
}

// D01, D19, D20: queues with an id and without; what is taken or unknown is refused. Many tasks are as many ids, or none. What is
// found is bounded and counted.
func TestDisbatchQueues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, c := w.disbatchServer(t)
	c.refused(t, http.StatusBadRequest, http.MethodPost, "/queues", `{"name":"q","plugin":"demo"}`, "demo")
	w.plugin(t, "n1", "true", "maxthreads=0")
	var plugins []string
	if c.ask(t, http.StatusOK, http.MethodGet, "/plugins", "", &plugins); !slices.Contains(plugins, "demo") {
		t.Errorf("the plugins are %q", plugins)
	}
	c.add(t, "q", "")
	c.refused(t, http.StatusConflict, http.MethodPost, "/queues", `{"name":"q","plugin":"demo"}`, "q")
	var made [2]disbatchQueue
	for i := range made {
		c.ask(t, http.StatusCreated, http.MethodPost, "/queues", `{"class":"demo","maxthreads":2,"nodes_pin":["n1"]}`, &made[i])
	}
	got := c.queue(t, made[0].ID)
	if made[0].ID == "" || made[0].ID == made[1].ID || got.Plugin != "demo" || got.Threads != nil || got.MaxThreads == nil || *got.MaxThreads != 2 ||
		!slices.Equal(got.Pin, []string{"n1"}) {
		t.Errorf("queues without a name: %+v, read as %+v", made, got)
	}
	params := make([]string, 1000)
	for i := range params {
		params[i] = fmt.Sprintf(`{"user":"u%d"}`, i)
	}
	ids := c.opens(t, "q", params...)
	if slices.Sort(ids); len(slices.Compact(ids)) != 1000 {
		t.Errorf("1000 tasks are %v", ids)
	}
	for _, bad := range []string{`[{"user":"u"},{}]`, `[]`, `{"user":"u"}`, `[{"user":"u"},7]`} {
		c.refused(t, http.StatusBadRequest, http.MethodPost, "/tasks/q", bad)
	}
	c.refused(t, http.StatusBadRequest, http.MethodPost, "/tasks/search", `{"options":{"limit":101}}`, "100")
	var found []disbatchTask
	if c.ask(t, http.StatusOK, http.MethodPost, "/tasks/search", `{"filter":{"queue":"q","status":-2}}`, &found); len(found) != 100 {
		t.Errorf("without a limit %d tasks are found", len(found))
	}
	if n, q := c.count(t, `{"queue":"q","status":-2}`), c.queue(t, "q"); n != 1000 || q.Queued != 1000 || q.Running != 0 || q.Completed != 0 {
		t.Errorf("%d tasks are counted, in queue %+v", n, q)
	}
	if got := c.is(t, ids[7]); got.Queue != "q" || got.Node != nil || string(got.Params) != `{"user":"u7"}` {
		t.Errorf("task %d is %+v", ids[7], got)
	}
	w.sound(t)
}

// D02, D03, D04: limits of queues and nodes that are set over REST hold from then on, and stop nothing that runs.
func TestDisbatchLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, c := w.disbatchServer(t)
	l := ledger{w.file(t, "ledger", "", 0o666)}
	for _, node := range []string{"n1", "n2"} {
		w.plugin(t, node, "set -- "+l.path+"\n"+waits, "slots=6")
	}
	c.add(t, "a", `,"maxthreads":2`)
	c.add(t, "b", `,"maxthreads":5`)
	c.set(t, "/nodes/n2", `{"maxthreads":0}`)
	c.opens(t, "a", slices.Repeat([]string{`{"n":1}`}, 10)...)
	l.begun(t, 0, 2)
	l.stays(t, 2)
	c.set(t, "/nodes/n2", `{"maxthreads":null}`)
	l.begun(t, 0, 4)
	l.stays(t, 4)
	c.set(t, "/nodes/n1", `{"maxthreads":3}`)
	c.set(t, "/nodes/n2", `{"maxthreads":2}`)
	c.opens(t, "b", slices.Repeat([]string{`{"n":2}`}, 2)...)
	l.begun(t, 0, 5)
	l.stays(t, 5)
	c.set(t, "/nodes/n1", `{"maxthreads":0}`)
	if got := c.queue(t, "a"); got.Running != 4 || got.Queued != 6 {
		t.Errorf("of queue a: %+v", got)
	}
	if got := c.node(t, "n1").MaxThreads; got == nil || *got != 0 {
		t.Errorf("the limit of n1 is %v", got)
	}
	c.set(t, "/queues/a", `{"threads":0}`)
	l.release(t)
	wait.Eventually(t, patience, func() bool { return c.queue(t, "b").Completed == 2 }, "queue b does not become empty")
	if got := c.queue(t, "a"); got.Queued != 6 {
		t.Errorf("of queue a, with 0 threads: %+v", got)
	}
	c.set(t, "/queues/a", `{"threads":6}`)
	wait.Eventually(t, patience, func() bool { return c.queue(t, "a").Completed == 10 }, "queue a does not become empty")
	for _, bad := range []string{`{"maxthreads":-1}`, `{"maxthreads":1.5}`, `{"maxthreads":"many"}`, `{"threads":1}`, `{}`} {
		c.refused(t, http.StatusBadRequest, http.MethodPost, "/nodes/n1", bad)
	}
	w.sound(t)
}

// reports is a plugin that reports the status of its parameters, if there is one.
const reports = `echo "$TDF_PARAMS"
status=$(echo "$TDF_PARAMS" | sed -n 's/.*"status":"\([^"]*\)".*/\1/p')
[ -z "$status" ] || echo "status=$status" >>"$TDF_CONTROL"
case $TDF_PARAMS in *stderr*) echo wrong >&2 ;; esac`

// D07, D16: the numbers of tasks that succeed and fail, and those that plugins report.
func TestDisbatchStatuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, c := w.disbatchServer(t)
	w.plugin(t, "n1", reports, "slots=2")
	c.add(t, "q", "")
	for params, want := range map[string]int{
		`{"quiet":1}`: 1, `{"stderr":1}`: 2, `{"status":"1"}`: 1, `{"status":"2"}`: 2, `{"status":"7"}`: 7,
		`{"status":"0"}`: 2, `{"status":"-1"}`: 2, `{"status":"abc"}`: 2,
	} {
		got := c.becomes(t, c.opens(t, "q", params)[0], want)
		if got.Node == nil || *got.Node != "n1" || got.Stdout != params+"\n" || (got.Stderr == "") != (want == 1) {
			t.Errorf("%s: %+v", params, got)
		}
	}
	if n := c.count(t, `{"queue":"q","status":{"$in":[2,7]}}`); n != 6 {
		t.Errorf("%d tasks have failed", n)
	}
	w.sound(t)
}

// D07, D12 to D15: a task on its way, held, released, cancelled and terminated over HTTP, and how it looks to Disbatch's clients.
func TestDisbatchChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, c := w.disbatchServer(t)
	l := ledger{w.file(t, "ledger", "", 0o666)}
	c.changes(t, w, l)
	w.sound(t)
}

func (c disbatchClient) changes(t *testing.T, w *world, l ledger) {
	t.Helper()
	w.queue(t, "q", "class=demo")
	ids := c.opens(t, "q", `{"n":1}`, `{"n":2}`, `{"n":3}`)
	born, last := c.is(t, ids[0]), 0.0
	step := func(id int64, verb string, status int) {
		t.Helper()
		if verb != "" {
			told(t, http.MethodPost, c.url+"/api/v1/tasks/"+verb, c.token, fmt.Sprintf(`{"tasks":["%d"]}`, id))
		}
		is := c.becomes(t, id, status)
		if id != ids[0] {
			return
		}
		if is.CTime != born.CTime || is.MTime < last || verb != "" && is.MTime <= last {
			t.Errorf("%s: made at %v, changed at %v, before that at %v", verb, is.CTime, is.MTime, last)
		}
		last = is.MTime
	}
	step(ids[0], "", -2)
	step(ids[0], "hold", -4)
	step(ids[1], "cancel", -5)
	w.plugin(t, "n1", "set -- "+l.path+"\necho partial\n"+waits, "slots=1")
	l.begun(t, 0, 1)
	step(ids[2], "", 0)
	step(ids[2], "cancel", -3)
	if got := c.is(t, ids[2]); !strings.HasPrefix(got.Stdout, "partial\n") || got.Node == nil || *got.Node != "n1" {
		t.Errorf("a task that was terminated: %+v", got)
	}
	step(ids[0], "release", 0)
	l.release(t)
	step(ids[0], "", 1)
	var after struct{ Unchanged []int64 }
	text := told(t, http.MethodPost, c.url+"/api/v1/tasks/cancel", c.token, fmt.Sprintf(`{"tasks":["%d","%d"]}`, ids[0], ids[1]))
	if err := json.Unmarshal(text, &after); err != nil {
		t.Fatal(err)
	}
	if n := l.count(t, 0, "start"); len(after.Unchanged) != 2 || n != 2 || c.is(t, ids[0]).Status != 1 || c.is(t, ids[1]).Status != -5 {
		t.Errorf("%d tasks ran; a cancel of what has ended left %v unchanged", n, after.Unchanged)
	}
}

// D08, D09: a worker is killed. What may not be run again is orphaned before the next of its name claims, or when its lease is over.
func TestDisbatchOrphans(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, c := w.disbatchServer(t, shortLeaseSet)
	w.leasePublished(t)
	l := ledger{w.file(t, "ledger", "", 0o666)}
	program := "set -- " + l.path + "\n" + waits
	first := w.plugin(t, "n1", program, "slots=2")
	w.queue(t, "once", "class=demo", "default_max_losses=0")
	ids := c.opens(t, "once", slices.Repeat([]string{`{"n":1}`}, 3)...)
	l.begun(t, 0, 2)
	w.kill(t, first)
	second := w.plugin(t, "n1", program, "slots=2")
	l.begun(t, 0, 3)
	for _, id := range ids[:2] {
		c.becomes(t, id, -6)
	}
	w.kill(t, second)
	c.becomes(t, ids[2], -6)
	if got := c.queue(t, "once"); got.Running != 0 || got.Queued != 0 {
		t.Errorf("the queue is %+v", got)
	}
	w.sound(t)
}

// D10, D11: a node says what it is and what its queues do, again and again. A queue of a class that it does not serve is left alone.
func TestDisbatchNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, c := w.disbatchServer(t, shortLeaseSet)
	w.leasePublished(t)
	l := ledger{w.file(t, "ledger", "", 0o666)}
	worker := w.plugin(t, "n1", "set -- "+l.path+"\n"+waits, "slots=4")
	c.add(t, "narrow", `,"maxthreads":2`)
	w.queue(t, "unknown", "class=audio")
	c.opens(t, "narrow", slices.Repeat([]string{`{"n":1}`}, 3)...)
	other := c.opens(t, "unknown", `{"n":1}`)[0]
	l.begun(t, 0, 2)
	use := func(n disbatchNode) string {
		for _, q := range n.Heartbeat.Queues {
			if q.Queue == "narrow" {
				return fmt.Sprint(q.Class, " ", q.Threads, q.Idle, q.Processing)
			}
		}
		return ""
	}
	wait.Eventually(t, patience, func() bool { return use(c.node(t, "n1")) == "demo 2 0 2" }, "the heartbeat does not say that two tasks run")
	seen := c.node(t, "n1")
	version, _, _ := run(t, w.dir, program(t, "tdf-worker"), "--version")
	if seen.Node != "n1" || seen.SpecVersion != "1.1" || seen.Version == "" || !strings.Contains(version, seen.Version) ||
		seen.Heartbeat.PID != worker.Process.Pid || fmt.Sprint(seen.QueueTypes) != "[map[class:demo version:1.1]]" {
		t.Errorf("the node is %+v; tdf-worker is %s", seen, version)
	}
	beat := seen.Heartbeat.DateTime
	wait.Eventually(t, patience, func() bool { return c.node(t, "n1").Heartbeat.DateTime.After(beat) }, "the heartbeat stands still")
	var all struct{ Nodes []disbatchNode }
	if c.ask(t, http.StatusOK, http.MethodGet, "/nodes", "", &all); len(all.Nodes) != 1 || all.Nodes[0].Node != "n1" {
		t.Errorf("the nodes are %+v", all)
	}
	l.release(t)
	wait.Eventually(t, patience, func() bool { return c.queue(t, "narrow").Completed == 3 }, "the tasks do not end")
	if got := c.is(t, other); got.Status != -2 || got.Node != nil {
		t.Errorf("a task of another class: %+v", got)
	}
	c.refused(t, http.StatusNotFound, http.MethodGet, "/nodes/n2", "", "n2")
}

// D18, D21: a plugin that cannot be started costs no task; the tasks of a queue are run in its order.
func TestDisbatchOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, c := w.disbatchServer(t)
	w.plugin(t, "n1", "true", "slots=1", "maxthreads=0")
	c.add(t, "fifo", "")
	c.add(t, "lifo", `,"sort":"lifo"`)
	ids := map[string][]int64{}
	for name := range map[string]bool{"fifo": true, "lifo": true} {
		for range 6 {
			ids[name] = append(ids[name], c.opens(t, name, `{"n":1}`)[0])
		}
	}
	c.set(t, "/nodes/n1", `{"maxthreads":null}`)
	for name, want := range ids {
		for _, id := range want {
			c.becomes(t, id, 1)
		}
		got := order(w.ended(t, want, sm.Succeeded))
		if name == "lifo" {
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: claimed in the order %v, opened in %v", name, got, want)
		}
	}
	w.file(t, "programs/demo/run.sh", "#!/no/interpreter\n", 0o755)
	failed := c.becomes(t, c.opens(t, "fifo", `{"n":1}`)[0], 2)
	contains(t, "what is told of it", failed.Stderr, "no/interpreter")
	w.sound(t)
}

// The commands of docs/DISBATCH.md do what it says, with curl and jq.
func TestDisbatchDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, url := w.httpServer(t, "http.listen=127.0.0.1:0", "http.disbatch=true")
	w.node(t, "mig01", "classes=demo=1.1", "program_dir="+filepath.Join(w.dir, "programs"), "slots=2").Says(t, `"message":"registered"`)
	stdout, stderr, code := w.shell(t, blocks(t, "DISBATCH.md"), "site.cfg", w.cfg, "http://127.0.0.1:7480", url)
	const want = `["demo"] ["mig01",null,"1.1",[{"class":"demo","version":"1.1"}]] 10 ["datetime","pid","queues"] ["insight","demo",null,0] ` +
		`["demo",2,["mig03"]] ["demo",20] 204 insight ["error"] ["ann",1,"mig01","migrating ann\n"] ["nobody",7,"mig01","migrating nobody\n"] ` +
		`["insight","[terse mode]"] [-5,{"user":"eve"}] `
	if code != 0 || stdout != want {
		t.Errorf("it ended with %d:\n%s\n%s", code, stdout, stderr)
	}
	w.sound(t)
}
