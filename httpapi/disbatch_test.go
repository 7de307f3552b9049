package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// newDisbatch is a client of Disbatch's interface, of a site where a worker has offered the plugin Demo::Echo.
func newDisbatch(t *testing.T) (o *old, w *foreign) {
	t.Helper()
	sp := storetest.New(t)
	o = &old{t: t, client: client{
		handler: serve(t, sp, &health{disbatch: true}), sp: sp, m: manager.New(storetest.At(t, sp.Where, sp.Namespace, nil), "test", manager.Options{}),
	}}
	_, o.fits = described(t, o.handler)
	o.token = o.tokenOf(t, task.TokenOperate)
	w = o.worker(t, "w1", `{"node":"mig01","slots":2,"classes":"Demo::Echo=1.1","identity":"i1","version":"py 1"}`)
	return o, w
}

// post posts a body and reads the answer.
func post[T any](o *old, status int, path, text string) T {
	o.t.Helper()
	return want[T](o.t, o.send(http.MethodPost, path, text, "Content-Type", "application/json"), status)
}

// refused checks that a request is refused, with a text that has all parts.
func (o *old) refused(status int, method, path, text string, parts ...string) {
	o.t.Helper()
	w := o.send(method, path, text)
	e := want[struct{ Error string }](o.t, w, status)
	for _, part := range append(parts, "") {
		if e.Error == "" || !strings.Contains(e.Error, part) {
			o.t.Errorf("%s %s %s: %q, want %q", method, path, text, e.Error, part)
		}
	}
}

// ids are those of tasks that a search finds, sorted.
func (o *old) found(filter string) []int64 {
	o.t.Helper()
	ids := []int64{}
	for _, found := range post[[]disbatchTask](o, http.StatusOK, "/tasks/search", `{"filter":`+filter+`}`) {
		ids = append(ids, found.ID)
	}
	slices.Sort(ids)
	return ids
}

// Queues are made, shown, changed and removed by both names of what has two; what cannot be is refused, and named.
func TestDisbatchQueues(t *testing.T) {
	t.Parallel()
	o, _ := newDisbatch(t)
	q := post[disbatchQueue](o, http.StatusCreated, "/queues", `{"_id":"mail","class":"Demo::Echo","description":"d","maxthreads":2,"nodes_pin":["mig02","mig01"],"nodes_ignore":["mig03"]}`)
	if q.ID != "mail" || q.DocumentID != "mail" || q.Name != "mail" || q.Plugin != "Demo::Echo" || q.Class != q.Plugin || q.Description != "d" ||
		q.Threads.N() != task.Unlimited.N() || q.MaxThreads.N() != 2 || strings.Join(q.Pin, " ") != "mig01 mig02" || strings.Join(q.Ignore, " ") != "mig03" || q.Sort != task.Fifo || q.Created == "" {
		t.Errorf("%+v", q)
	}
	if made := post[disbatchQueue](o, http.StatusCreated, "/queues", `{"plugin":"Demo::Echo","name":null}`); made.Name == "" || made.Name == "mail" {
		t.Errorf("%+v", made)
	}
	q = post[disbatchQueue](o, http.StatusOK, "/queues/mail", `{"name":"mail","threads":0,"maxthreads":null,"nodes_pin":[],"sort":"lifo","plugin":"Demo::Echo"}`)
	if q.Threads != task.AtMost(0) || q.MaxThreads.N() != task.Unlimited.N() || len(q.Pin) != 0 || q.Sort != task.Lifo || q.Description != "d" {
		t.Errorf("%+v", q)
	}
	if q = post[disbatchQueue](o, http.StatusOK, "/queues/mail", `{"sort":"default"}`); q.Sort != task.Fifo {
		t.Errorf("%+v", q)
	}
	if all := want[[]disbatchQueue](t, o.send(http.MethodGet, "/queues", ""), http.StatusOK); len(all) != 3 {
		t.Errorf("%+v", all)
	}
	for body, parts := range map[string][]string{
		`{"name":"mail","plugin":"Demo::Nothing"}`: {"plugin", "Demo::Nothing"}, `{"name":"x"}`: {"plugin"}, `{"name":"x","plugin":"Demo::Echo","thread":1}`: {"field thread:", "threads"},
		`{"name":"x","plugin":"Demo::Echo","threads":-1}`: {"threads", "-1"}, `{"name":"x","plugin":"Demo::Echo","threads":"1"}`: {"threads"},
		`{"name":"x","_id":"y","plugin":"Demo::Echo"}`: {"leave one"}, `{"name":"a/b","plugin":"Demo::Echo"}`: {"queue", "a/b"}, `{"name":7,"plugin":"Demo::Echo"}`: {"name"},
		`{"name":"x","plugin":"Demo::Echo","nodes_pin":"mig01"}`: {"nodes_pin"}, `{"name":"x","plugin":"Demo::Echo","nodes_pin":["a,b"]}`: {"a,b"},
		`{"name":"x","plugin":"Demo::Echo","sort":"up"}`: {"fifo or lifo"}, `{"name":"x","plugin":"../x"}`: {"../x"}, `[]`: {"JSON object"},
	} {
		o.refused(http.StatusBadRequest, http.MethodPost, "/queues", body, parts...)
	}
	o.refused(http.StatusConflict, http.MethodPost, "/queues", `{"name":"mail","plugin":"Demo::Echo"}`, "mail")
	o.refused(http.StatusBadRequest, http.MethodPost, "/queues/mail", `{"name":"post"}`, "stays")
	o.refused(http.StatusBadRequest, http.MethodPost, "/queues/mail", `{"class":"Demo::Nothing"}`, "Demo::Nothing")
	o.refused(http.StatusNotFound, http.MethodPost, "/queues/none", `{}`, "none")
	o.refused(http.StatusNotFound, http.MethodGet, "/queues/none", "", "none")
	post[map[string][]int64](o, http.StatusCreated, "/tasks/mail", `[{"n":1}]`)
	o.refused(http.StatusConflict, http.MethodDelete, "/queues/mail", "", "1 open")
	if w := o.send(http.MethodDelete, "/queues/"+want[[]disbatchQueue](t, o.send(http.MethodGet, "/queues", ""), http.StatusOK)[2].Name, ""); w.Code != http.StatusNoContent {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Nodes are shown with what their workers say, together, and limited; plugins are what workers offer.
func TestDisbatchNodes(t *testing.T) {
	t.Parallel()
	o, w := newDisbatch(t)
	w.turn(t, "")
	o.worker(t, "w2", `{"node":"mig01","slots":3,"classes":"Other","identity":"i2","version":"py 2"}`)
	o.worker(t, "w3", `{"node":"mig02","slots":1,"classes":"flock:python","identity":"i3","version":"f"}`)
	nodes := want[struct{ Nodes []disbatchNode }](t, o.send(http.MethodGet, "/nodes", ""), http.StatusOK).Nodes
	if len(nodes) != 2 {
		t.Fatalf("%+v", nodes)
	}
	n := &nodes[0]
	if n.ID != "mig01" || n.DocumentID != "mig01" || n.Node != "mig01" || n.SpecVersion != "1.1" || n.Version != "py 2" || n.Timestamp == nil || n.Heartbeat == nil ||
		n.Heartbeat.Time.UnixMilli() != *n.Timestamp || fmt.Sprint(n.QueueTypes) != "[{Demo::Echo 1.1} {Other }]" {
		t.Errorf("%+v", n)
	}
	if names := want[[]string](t, o.send(http.MethodGet, "/plugins", ""), http.StatusOK); strings.Join(names, " ") != "Demo::Echo Other" {
		t.Errorf("%v", names)
	}
	for body, most := range map[string]int{`{"maxthreads":0}`: 0, `{"maxthreads":3}`: 3, `{"maxthreads":null}`: task.Unlimited.N()} {
		if n := post[disbatchNode](o, http.StatusOK, "/nodes/mig01", body); n.MaxThreads.N() != most {
			t.Errorf("%s: %+v", body, n)
		}
	}
	for _, body := range []string{`{}`, `{"maxthreads":-1}`, `{"maxthreads":1.5}`, `{"maxthreads":"1"}`, `{"maxthreads":1,"x":1}`} {
		o.refused(http.StatusBadRequest, http.MethodPost, "/nodes/mig01", body)
	}
	o.refused(http.StatusNotFound, http.MethodPost, "/nodes/mig09", `{"maxthreads":1}`, "mig09")
	o.refused(http.StatusNotFound, http.MethodGet, "/nodes/mig09", "", "mig09")
	known := nodeShown(&task.Node{NodeRecord: task.NodeRecord{Name: "n"}, Workers: []task.Worker{
		{State: task.WorkerReady, Queues: []task.QueueUse{{Queue: "a", Threads: 3, Idle: 1, Processing: 2}, {Queue: "b", Threads: 3, Idle: 3}}},
		{State: task.WorkerReady, Queues: []task.QueueUse{{Queue: "a", Threads: 2, Idle: 2}}}, {State: task.WorkerLost, Queues: []task.QueueUse{{Queue: "a", Threads: 9}}},
	}})
	if got := fmt.Sprint(known.Heartbeat.Queues); got != "[{ a 5 3 2} { b 3 3 0}]" {
		t.Error(got)
	}
}

// Tasks are opened all or none, run with their parameters, and say what became of them, with the status that is reported.
func TestDisbatchTasks(t *testing.T) {
	t.Parallel()
	o, w := newDisbatch(t)
	post[disbatchQueue](o, http.StatusCreated, "/queues", `{"name":"mail","plugin":"Demo::Echo"}`)
	for body, parts := range map[string][]string{
		`[{"n":1},{}]`: {"element 1", "nothing was opened"}, `[{"n":1},7]`: {"element 1"}, `[]`: {"no task"}, ``: {"no task"}, `{"n":1}`: {"JSON array"},
		`[{"n":"` + strings.Repeat("x", 65<<10) + `"}]`: {"element 0"},
	} {
		o.refused(http.StatusBadRequest, http.MethodPost, "/tasks/mail", body, parts...)
	}
	o.refused(http.StatusNotFound, http.MethodPost, "/tasks/none", `[{"n":1}]`, "none")
	o.refused(http.StatusBadRequest, http.MethodPost, "/tasks/default", `[{"n":1}]`, "no plugin")
	o.refused(http.StatusNotFound, http.MethodPost, "/tasks/mail/people", `{}`, "collections")
	if got := o.found(`{}`); len(got) != 0 {
		t.Fatalf("opened %v", got)
	}
	ids := post[map[string][]int64](o, http.StatusCreated, "/tasks/mail", `[{"n":1},{"n":2},{"n":3}]`)["ids"]
	if len(ids) != 3 {
		t.Fatalf("%v", ids)
	}
	first := want[disbatchTask](t, o.send(http.MethodGet, fmt.Sprintf("/tasks/%d", ids[0]), ""), http.StatusOK)
	if first.ID != ids[0] || first.DocumentID != first.ID || first.Queue != "mail" || first.Status != -2 || first.Node != nil || string(first.Params) != `{"n":1}` || string(first.Parameters) != `{"n":1}` || first.Modified == "" {
		t.Errorf("%+v", first)
	}
	created := first.Created
	for i, tt := range []struct {
		end    string
		status int
		stderr string
	}{{`"exit_code":0,"output":"b3V0","status":1`, 1, ""}, {`"exit_code":0,"status":7`, 7, "the program reported status 7"}} {
		a := w.claim(t)
		if a.Task != ids[i] || a.Program != "Demo.Echo" || a.Variables["TDF_PARAMS"] != fmt.Sprintf(`{"n":%d}`, i+1) {
			t.Errorf("%+v", a)
		}
		running := want[disbatchTask](t, o.send(http.MethodGet, fmt.Sprintf("/tasks/%d", a.Task), ""), http.StatusOK)
		if running.Status != 0 || running.Node == nil || *running.Node != "mig01" {
			t.Errorf("%+v", running)
		}
		w.report(t, &a, tt.end)
		stop := runServer(t, o.sp)
		wait.Eventually(t, time.Minute, func() bool { return o.task(t, a.Task).DisbatchStatus() == tt.status }, "task %d has not ended", a.Task)
		stop()
		ended := want[disbatchTask](t, o.send(http.MethodGet, fmt.Sprintf("/tasks/%d", a.Task), ""), http.StatusOK)
		if ended.Status != tt.status || ended.Stderr != tt.stderr || ended.Modified <= running.Modified {
			t.Errorf("%+v", ended)
		}
	}
	if ended := want[disbatchTask](t, o.send(http.MethodGet, fmt.Sprintf("/tasks/%d", ids[0]), ""), http.StatusOK); ended.Created != created || ended.Stdout != "out" {
		t.Errorf("%+v", ended)
	}
	for filter, places := range map[string][]int{
		`{}`: {0, 1, 2}, `{"status":1}`: {0}, `{"status":7}`: {1}, `{"status":2}`: {}, `{"status":-2}`: {2}, `{"status":-1}`: {}, `{"status":{"$in":[-2,7]}}`: {1, 2},
		`{"queue":"mail"}`: {0, 1, 2}, `{"queue":"none"}`: {}, `{"queue":{"$in":["none","mail"]}}`: {0, 1, 2}, `{"node":"mig01"}`: {0, 1}, `{"node":null}`: {2}, `{"node":-1}`: {2},
		`{"params.n":2}`: {1}, `{"parameters.n":{"$in":[1,3]}}`: {0, 2}, `{"params.n":"2"}`: {}, `{"params.m":null}`: {0, 1, 2}, `{"node":{"$in":[]}}`: {},
		fmt.Sprintf(`{"id":%d}`, ids[1]): {1}, fmt.Sprintf(`{"_id":{"$in":[%d,%d]},"status":1}`, ids[0], ids[1]): {0}, `{"id":{"$in":[]}}`: {},
	} {
		wanted := []int64{}
		for _, place := range places {
			wanted = append(wanted, ids[place])
		}
		if got := o.found(filter); !slices.Equal(got, wanted) {
			t.Errorf("%s: %v, want %v", filter, got, wanted)
		}
		count := post[map[string]int](o, http.StatusOK, "/tasks/search", `{"count":1,"options":{"limit":1},"filter":`+filter+`}`)
		if count["count"] != len(wanted) {
			t.Errorf("%s: %v", filter, count)
		}
	}
	o.searches(ids)
	if q := want[disbatchQueue](t, o.send(http.MethodGet, "/queues/mail", ""), http.StatusOK); q.Queued != 1 || q.Running != 0 || q.Completed != 2 {
		t.Errorf("%+v", q)
	}
}

// searches checks what a search shows, and refuses, where the first task has succeeded.
func (o *old) searches(ids []int64) {
	o.t.Helper()
	first := post[[]disbatchTask](o, http.StatusOK, "/tasks/search", `{"filter":{"status":1}}`)
	whole := post[[]disbatchTask](o, http.StatusOK, "/tasks/search", `{"filter":{"status":1},"terse":false}`)
	if first[0].Stdout != "[terse mode]" || first[0].Stderr != "" || whole[0].Stdout != "out" {
		o.t.Errorf("%+v, %+v", first, whole)
	}
	seen := map[int64]bool{}
	for skip := range 4 {
		page := post[[]disbatchTask](o, http.StatusOK, "/tasks/search", fmt.Sprintf(`{"options":{"limit":1,"skip":%d}}`, skip))
		if len(page) > 1 {
			o.t.Errorf("after %d there are %d tasks", skip, len(page))
		}
		for _, found := range page {
			seen[found.ID] = true
		}
	}
	if len(seen) != len(ids) {
		o.t.Errorf("%v", seen)
	}
	if w := o.send(http.MethodPost, "/tasks/search", `{"pretty":true}`); !strings.Contains(w.Body.String(), "\n    \"id\": ") {
		o.t.Errorf("%s", w.Body)
	}
	for body, part := range map[string]string{
		`{"options":{"limit":101}}`: "limit", `{"options":{"limit":0}}`: "limit", `{"options":{"skip":-1}}`: "skip", `{"options":{"sort":1}}`: "sort", `{"options":7}`: "options",
		`{"filters":{}}`: "filters", `{"filter":7}`: "filter", `{"filter":{"ctime":1}}`: "filter.ctime", `{"filter":{"status":{"$gt":1}}}`: "$gt", `{"filter":{"status":{"$in":1}}}`: "$in",
		`{"filter":{"status":"a"}}`: "filter.status", `{"filter":{"id":0}}`: "filter.id", `{"filter":{"id":"1"}}`: "filter.id", `{"filter":{"queue":7}}`: "filter.queue", `{"filter":{"node":7}}`: "filter.node",
		`{"filter":{"status":[1]}}`: "$in", `{"filter":{"status":{"$in":[[1]]}}}`: "$in", `{"filter":{"id":1,"_id":2}}`: "once", `{"count":"yes"}`: "count",
	} {
		o.refused(http.StatusBadRequest, http.MethodPost, "/tasks/search", body, part)
	}
}

// The same request sent again opens nothing twice, and other tasks under its name are refused.
func TestDisbatchTwice(t *testing.T) {
	t.Parallel()
	o, _ := newDisbatch(t)
	post[disbatchQueue](o, http.StatusCreated, "/queues", `{"name":"mail","plugin":"Demo::Echo"}`)
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf(`{"n":%d,"text":%s}`, i, asJSON(strings.Repeat("x", 2000)))
	}
	send := func(text, key string, status int) (ids []int64) {
		w := o.send(http.MethodPost, "/tasks/mail", text, "Idempotency-Key", key)
		return want[struct{ IDs []int64 }](t, w, status).IDs
	}
	ids := send("["+strings.Join(many, ",")+"]", "k", http.StatusCreated)
	if again := send("["+strings.Join(many, ",")+"]", "k", http.StatusCreated); len(ids) != 1000 || !slices.Equal(ids, again) {
		t.Errorf("%d ids, then %d", len(ids), len(again))
	}
	send(`[{"n":1}]`, "k", http.StatusConflict)
	send(`[{"n":1}]`, strings.Repeat("k", 201), http.StatusBadRequest)
	if found := post[[]json.RawMessage](o, http.StatusOK, "/tasks/search", `{}`); len(found) != 100 {
		t.Errorf("%d tasks", len(found))
	}
	if w := o.send(http.MethodPost, "/tasks/mail", "["+strings.Repeat(" ", mostList)+"]"); w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Nobody asks without a token that may, and nothing is served by default.
func TestDisbatchCallers(t *testing.T) {
	t.Parallel()
	o, _ := newDisbatch(t)
	operator := o.token
	if w := o.send(http.MethodGet, "/queues", "", "Origin", "http://evil.example"); w.Code != http.StatusForbidden {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	o.refused(http.StatusNotFound, http.MethodGet, "/tasks/x", "", "x")
	o.refused(http.StatusNotFound, http.MethodGet, "/tasks/77", "", "77")
	o.refused(http.StatusNotFound, http.MethodGet, "/nodes/a/b", "", "/queues/QUEUE")
	o.refused(http.StatusMethodNotAllowed, http.MethodPut, "/queues", "", "PUT")
	for _, tt := range []struct {
		role                 task.TokenRole
		read, submit, change bool
	}{
		{task.TokenRead, true, false, false}, {task.TokenSubmit, true, true, false}, {task.TokenWork, false, false, false}, {task.TokenAdmin, true, true, true},
	} {
		o.token = o.tokenOf(t, tt.role)
		for path, may := range map[string]bool{
			"GET /nodes": tt.read, "HEAD /nodes": tt.read, "GET /nodes/x": tt.read, "GET /plugins": tt.read, "GET /queues": tt.read, "GET /queues/x": tt.read, "POST /tasks/search": tt.read, "GET /tasks/7": tt.read,
			"POST /tasks/x": tt.submit, "POST /tasks/x/y": tt.submit, "POST /nodes/x": tt.change, "POST /queues": tt.change, "POST /queues/x": tt.change, "DELETE /queues/x": tt.change,
		} {
			method, path, _ := strings.Cut(path, " ")
			if w := o.send(method, path, ""); (w.Code != http.StatusForbidden) != may {
				t.Errorf("%s %s as %s: %d %s", method, path, tt.role, w.Code, w.Body)
			}
		}
	}
	off := &old{t: t, client: o.client}
	off.token, off.handler = operator, serve(t, o.sp, &health{flock: true})
	for _, path := range []string{"/queues", "/nodes", "/plugins", "/tasks/7"} {
		if w := off.send(http.MethodGet, path, ""); w.Code != http.StatusNotFound || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("off by default: %d %s", w.Code, w.Body)
		}
	}
}
