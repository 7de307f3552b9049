package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/series"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// old is a client of Flock's.
type old struct {
	client

	t *testing.T
}

// newOld is a client of a site of its own, where a server and a clock of series are at work, with a token that may do all.
func newOld(t *testing.T, settings ...string) *old {
	t.Helper()
	sp := storetest.New(t)
	o := &old{t: t, client: client{
		handler: serve(t, sp, &health{flock: true}), sp: sp, m: manager.New(storetest.At(t, sp.Where, sp.Namespace, nil), "test", manager.Options{}),
	}}
	o.token = o.tokenOf(t, task.TokenOperate)
	stop := runServer(t, sp, append([]string{"server.worker_timeout=60"}, settings...)...) // workers that do not ask live on
	wait.Eventually(t, time.Minute, func() bool { return sp.Raw.HExists(t.Context(), sp.Key("meta"), "worker_timeout").Val() }, "no lease")
	ctx, cancel := context.WithCancel(context.Background())
	var beside sync.WaitGroup
	beside.Go(func() { _ = series.NewRunner(o.m, series.Options{Logger: slog.New(slog.DiscardHandler)}).Run(ctx) })
	t.Cleanup(func() {
		cancel()
		beside.Wait()
	})
	t.Cleanup(stop)
	return o
}

// send sends a request; header are pairs of names and values.
func (o *old) send(method, path, text string, header ...string) *httptest.ResponseRecorder {
	o.t.Helper()
	r := httptest.NewRequestWithContext(o.t.Context(), method, path, strings.NewReader(text))
	r.SetBasicAuth("anyone", o.token)
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	w := httptest.NewRecorder()
	o.handler.ServeHTTP(w, r)
	return w
}

// said is an answer of Flock's.
type said struct {
	TID, FID, WID int64
	ETA           json.Number
	Modified      json.Number
	Key           string `json:"task_key"`
	Params        json.RawMessage
	State, Error  string
	Name, Env     string
}

// want sends a request, and reads the answer.
func (o *old) want(status int, method, path, text string) *said {
	o.t.Helper()
	w := o.send(method, path, text)
	s := &said{}
	if w.Code != status {
		o.t.Fatalf("%s %s %s: %d %s, want %d", method, path, text, w.Code, w.Body, status)
	}
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), s); err != nil || w.Header().Get("Content-Type") != "application/json" {
			o.t.Fatalf("%s %s: %v, %v, %s", method, path, err, w.Header(), w.Body)
		}
	}
	if status >= http.StatusBadRequest && s.Error == "" {
		o.t.Errorf("%s %s: no error in %s", method, path, w.Body)
	}
	return s
}

// function makes one.
func (o *old) function(env string) int64 {
	o.t.Helper()
	return o.want(http.StatusCreated, http.MethodPost, "/func", `{"name":"crawl","env":"`+env+`"}`).FID
}

// schedule schedules a task, with further members such as ,"params":{}.
func (o *old) schedule(fid int64, key, eta, members string) int64 {
	o.t.Helper()
	text := fmt.Sprintf(`{"fid":%d,"task_key":%s,"eta":%s%s}`, fid, asJSON(key), eta, members)
	return o.want(http.StatusCreated, http.MethodPost, "/task", text).TID
}

func (o *old) register(env string) string {
	o.t.Helper()
	wid := o.want(http.StatusCreated, http.MethodPost, "/worker", `{"ip":"10.0.0.5","pid":4242,"cap":"`+env+`"}`).WID
	return "/worker/" + strconv.FormatInt(wid, 10)
}

// reserve waits until the worker gets a task.
func (o *old) reserve(wid string) *said {
	o.t.Helper()
	var got *said
	wait.Eventually(o.t, time.Minute, func() bool {
		w := o.send(http.MethodGet, wid+"/task", "")
		if w.Code == http.StatusOK {
			got = want[*said](o.t, w, http.StatusOK)
		} else if w.Code != http.StatusNoContent || w.Body.Len() > 0 {
			o.t.Fatalf("%d %s", w.Code, w.Body)
		}
		return got != nil
	}, "worker %s gets nothing", wid)
	return got
}

func taskPath(tid int64) string { return "/task/" + strconv.FormatInt(tid, 10) }

// becomes waits until a task is in one of some states.
func (o *old) becomes(tid int64, states ...string) *said {
	o.t.Helper()
	var got *said
	wait.Eventually(o.t, time.Minute, func() bool {
		got = o.want(http.StatusOK, http.MethodGet, taskPath(tid), "")
		return slices.Contains(states, got.State)
	}, "not %s", states)
	return got
}

// lose ends the session of a worker, which loses what it holds.
func (o *old) lose(wid string) {
	o.t.Helper()
	name, g := workerPrefix+strings.TrimPrefix(wid, "/worker/"), gatewayOf(o.t, o.sp)
	standing, lost, err := g.Register(o.t.Context(), name, "elsewhere", &worker.SessionRequest{TakeOver: true})
	if err == nil {
		err = g.Leave(o.t.Context(), name, standing.Incarnation)
	}
	if err != nil || len(lost) != 1 {
		o.t.Fatalf("%v is lost, error %v", lost, err)
	}
}

const soon, late = "1", "4000000000.25"

// A function is made once, a task is scheduled, reserved and completed, and is due again when its worker has said; then it goes.
func TestFlock(t *testing.T) {
	t.Parallel()
	o := newOld(t)
	w := o.send(http.MethodPost, "/func/", `{"name":"crawl","env":"python"}`, "Content-Type", "application/json; charset=utf-8")
	fn := want[*said](t, w, http.StatusCreated)
	if fn.FID < 1 || fn.FID >= 1<<53 || w.Header().Get("Location") != fmt.Sprintf("/func/%d", fn.FID) || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%+v, %v", fn, w.Header())
	}
	again := o.want(http.StatusOK, http.MethodPost, "/func", `{"env":"python","name":"crawl","colour":"red"}`)
	other := o.want(http.StatusCreated, http.MethodPost, "/func", `{"name":"crawl","env":"java"}`)
	for _, path := range []string{"/func/", "/fun/"} {
		if got := o.want(http.StatusOK, http.MethodGet, path+strconv.FormatInt(fn.FID, 10), ""); got.FID != fn.FID || again.FID != fn.FID || got.Name != "crawl" || got.Env != "python" || other.FID == fn.FID {
			t.Errorf("%+v, %+v, %+v", got, again, other)
		}
	}
	o.want(http.StatusNotFound, http.MethodGet, "/fun/1", "")
	o.want(http.StatusNotFound, http.MethodPost, "/task", `{"fid":1,"task_key":"k","eta":1}`)
	const params = `{"big":9007199254740993,"deep":{"a":[null,1.50]},"text":"ü<&\u0001"}`
	tid := o.schedule(fn.FID, "http://a/b", soon+".000001", `,"params":`+params)
	if tid < 1 || tid >= 1<<53 {
		t.Errorf("tid %d", tid)
	}
	wid, java := o.register("python"), o.register("java")
	got := o.reserve(wid)
	if got.TID != tid || got.FID != fn.FID || got.Key != "http://a/b" || got.ETA != "1.000001" || string(got.Params) != params || "/worker/"+strconv.FormatInt(got.WID, 10) != wid {
		t.Errorf("%+v, params %s", got, got.Params)
	}
	if n := o.send(http.MethodPost, java+"/task", ""); n.Code != http.StatusNoContent {
		t.Errorf("another environment: %d %s", n.Code, n.Body)
	}
	o.want(http.StatusConflict, http.MethodPut, java+taskPath(tid), `{}`)
	shown := o.want(http.StatusOK, http.MethodGet, taskPath(tid), "")
	if shown.WID != got.WID || shown.State != flockReserved || shown.ETA != "1.000001" || shown.Modified == "" || string(shown.Params) != params {
		t.Errorf("%+v", shown)
	}
	o.want(http.StatusOK, http.MethodPut, wid+taskPath(tid), `{"new_eta":`+late+`}`)
	o.want(http.StatusConflict, http.MethodPut, wid+taskPath(tid), `{}`)
	for range 2 { // before and after the series knows
		if shown = o.becomes(tid, flockScheduled); shown.WID != 0 || shown.ETA != late || shown.Error != "" {
			t.Errorf("%+v", shown)
		}
		wait.Eventually(t, time.Minute, func() bool { return len(o.series(tid).Live) == 0 }, "it is not settled")
	}
	if first := o.task(t, o.series(tid).History[0].Task); first.State != statemachine.Archived || first.Outcome != statemachine.Succeeded {
		t.Errorf("%+v", first)
	}
	o.want(http.StatusOK, http.MethodPut, taskPath(tid), `{"eta":2}`)
	if got = o.reserve(wid); got.TID != tid || got.ETA != "2" {
		t.Errorf("%+v", got)
	}
	o.want(http.StatusOK, http.MethodPut, wid+taskPath(tid), ``)
	o.want(http.StatusNotFound, http.MethodGet, taskPath(tid), "")
	if o.schedule(fn.FID, "http://a/b", late, "") != tid {
		t.Error("the same key has another number")
	}
	if w := o.send(http.MethodDelete, taskPath(tid), ""); w.Code != http.StatusNoContent {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	o.want(http.StatusNotFound, http.MethodDelete, taskPath(tid), "")
}

func (o *old) series(tid int64) *series.Series {
	o.t.Helper()
	s, err := series.Get(o.t.Context(), o.m, seriesKey(tid))
	if err != nil {
		o.t.Fatal(err)
	}
	return s
}

// A key is unique within its function, however long it is, and names the task that has it.
func TestFlockKeys(t *testing.T) {
	t.Parallel()
	o := newOld(t)
	fid := o.function("python")
	other := o.want(http.StatusCreated, http.MethodPost, "/func", `{"name":"other","env":"python"}`).FID
	long := strings.Repeat("ü", 4000)
	tids := map[int64]bool{}
	for _, key := range []string{long, long[:8000-2] + "u", "\r\n\t\x7f ' \"", " ", "a b"} {
		tids[o.schedule(fid, key, late, "")] = true
	}
	tids[o.schedule(other, long, late, "")] = true
	if len(tids) != 6 {
		t.Errorf("tids %v", tids)
	}
	tid := o.schedule(fid, "k", late, "")
	if got := o.want(http.StatusConflict, http.MethodPost, "/task", fmt.Sprintf(`{"fid":%d,"task_key":"k","eta":1}`, fid)); got.TID != tid {
		t.Errorf("%+v, want tid %d", got, tid)
	}
	if got := o.want(http.StatusOK, http.MethodGet, taskPath(tid), ""); got.ETA != late {
		t.Errorf("%+v", got)
	}
	var wg sync.WaitGroup
	codes := make([]int, 8)
	for i := range codes {
		wg.Go(func() {
			codes[i] = o.send(http.MethodPost, "/task", fmt.Sprintf(`{"fid":%d,"task_key":"one","eta":%s}`, fid, late)).Code
		})
	}
	wg.Wait()
	slices.Sort(codes)
	if codes[0] != http.StatusCreated || codes[1] != http.StatusConflict {
		t.Errorf("%v", codes)
	}
	if _, err := series.Edit(t.Context(), o.m, seriesKey(tid), func(s *series.Series) error {
		s.Task["argv"] = asJSON([]string{"another key of that number"})
		return nil
	}, manager.ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	if w := o.send(http.MethodPost, "/task", fmt.Sprintf(`{"fid":%d,"task_key":"k","eta":1}`, fid)); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "another task_key") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Each task is reserved once, however many workers ask, and one worker may hold many.
func TestFlockReservesOnce(t *testing.T) {
	t.Parallel()
	o := newOld(t)
	fid := o.function("python")
	const n, threads = 60, 4
	for i := range n {
		o.schedule(fid, strconv.Itoa(i), soon, "")
	}
	var mu sync.Mutex
	seen := map[int64]int{}
	var wg sync.WaitGroup
	for _, wid := range []string{o.register("python"), o.register("python")} {
		for range threads {
			wg.Go(func() {
				wait.Eventually(t, time.Minute, func() bool {
					w := o.send(http.MethodPost, wid+"/task", "")
					mu.Lock()
					defer mu.Unlock()
					if w.Code == http.StatusOK {
						seen[want[said](t, w, http.StatusOK).TID]++
					}
					return len(seen) == n
				}, "not all")
			})
		}
	}
	wg.Wait()
	for tid, times := range seen {
		if times != 1 {
			t.Errorf("task %d is reserved %d times", tid, times)
		}
	}
}

// A worker that is silent is gone, and others get what it held as it was; its late word does nothing. One that lives keeps all.
func TestFlockDeadWorker(t *testing.T) {
	t.Parallel()
	o := newOld(t, "server.worker_timeout=5")
	tid := o.schedule(o.function("python"), "k", "1700000000.5", "")
	dead, alive := o.register("python"), o.register("python")
	o.reserve(dead)
	beat := func() {
		if w := o.send(http.MethodPut, alive, `{"status":"busy"}`); w.Code != http.StatusNoContent || w.Body.Len() > 0 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	wait.Eventually(t, time.Minute, func() bool {
		beat()
		return o.becomes(tid, flockReserved, flockDue).State == flockDue
	}, "it is not released")
	o.want(http.StatusNotFound, http.MethodPut, dead, "{}")
	o.want(http.StatusNotFound, http.MethodGet, dead+"/task", "")
	if got := o.reserve(alive); got.TID != tid || got.ETA != "1700000000.5" {
		t.Errorf("%+v", got)
	}
	o.want(http.StatusNotFound, http.MethodPut, dead+taskPath(tid), `{"new_eta":5}`)
	o.want(http.StatusOK, http.MethodPut, alive+taskPath(tid), `{"new_eta":`+late+`}`)
	if got := o.becomes(tid, flockScheduled); got.ETA != late {
		t.Errorf("%+v", got)
	}
	for _, path := range []string{"/worker/0", "/worker/x", "/worker/12345"} {
		o.want(http.StatusNotFound, http.MethodPut, path, "{}")
	}
}

// A round that was cancelled, or takes too long, is over with the next request of its worker, which cannot be told to stop.
func TestFlockTimeout(t *testing.T) {
	t.Parallel()
	o := newOld(t)
	fid, wid := o.function("python"), o.register("python")
	name := workerPrefix + strings.TrimPrefix(wid, "/worker/")
	for i, ask := range []func(tid int64){
		func(int64) {
			if w := o.send(http.MethodPut, wid, ""); w.Code != http.StatusNoContent {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		},
		func(int64) { o.send(http.MethodGet, wid+"/task", "") },
		func(tid int64) { o.want(http.StatusConflict, http.MethodPut, wid+taskPath(tid), `{"new_eta":5}`) },
	} {
		tid := o.schedule(fid, strconv.Itoa(i), soon, "")
		o.reserve(wid)
		id := o.series(tid).Live[0]
		if _, err := o.m.Cancel(t.Context(), []int64{id}, manager.ChangeOptions{}); err != nil {
			t.Fatal(err)
		}
		if w, err := o.m.Worker(t.Context(), name); err != nil || !slices.Equal(w.Tasks, []int64{id}) {
			t.Fatalf("%+v, %v", w, err)
		}
		ask(tid)
		if got := o.task(t, id); got.EndState() != statemachine.Terminated {
			t.Errorf("%d: %+v", i, got)
		}
		o.want(http.StatusConflict, http.MethodPut, wid+taskPath(tid), `{"new_eta":5}`)
		o.becomes(tid, flockOver)
	}
	tid := o.schedule(fid, "slow", soon, "")
	o.reserve(wid)
	id := o.series(tid).Live[0]
	if err := o.sp.Store.TellOverdue(t.Context(), o.sp.Task(t, id)); err != nil {
		t.Fatal(err)
	}
	o.send(http.MethodPut, wid, "")
	if got := o.task(t, id); got.State == statemachine.Running || got.Rounds[0].Class != statemachine.ClassTime {
		t.Errorf("%+v", got)
	}
}

// What changes while a task waits counts at once, and while a worker has it, once that is done, unless the worker says another time.
func TestFlockChangesMeanwhile(t *testing.T) {
	t.Parallel()
	o := newOld(t)
	fid, wid, second := o.function("python"), o.register("python"), o.register("python")
	tid := o.schedule(fid, "k", late, `,"params":{"n":1}`)
	if got := o.want(http.StatusOK, http.MethodPut, taskPath(tid), `{"params":{"n":2}}`); got.ETA != late || string(got.Params) != `{"n":2}` {
		t.Errorf("%+v %s", got, got.Params)
	}
	o.want(http.StatusOK, http.MethodPut, taskPath(tid), `{"eta":3}`)
	due := o.becomes(tid, flockDue)
	if due.ETA != "3" || string(due.Params) != `{"n":2}` {
		t.Errorf("%+v %s", due, due.Params)
	}
	o.want(http.StatusOK, http.MethodPut, taskPath(tid), `{"params":{"n":3}}`)
	first := o.series(tid).Live[0]
	if got := o.task(t, first); string(got.Params) != `{"n":3}` {
		t.Errorf("params %s", got.Params)
	}
	if got := o.want(http.StatusOK, http.MethodPut, taskPath(tid), `{"eta":`+late+`}`); got.ETA != late {
		t.Errorf("%+v", got)
	}
	if got := o.becomes(tid, flockScheduled); got.ETA != late || o.task(t, first).EndState() != statemachine.Cancelled {
		t.Errorf("%+v", got)
	}
	wait.Eventually(t, time.Minute, func() bool { return len(o.series(tid).Live) == 0 }, "it is not settled")
	o.want(http.StatusOK, http.MethodPut, taskPath(tid), `{"eta":4}`)
	o.becomes(tid, flockDue)
	operators := o.series(tid).Live[0]
	if done, err := o.m.SetParams(t.Context(), []int64{operators}, json.RawMessage(`{"n":4}`), manager.ChangeOptions{}); err != nil || done[0].Err != nil {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := o.reserve(wid); got.ETA != "4" || string(got.Params) != `{"n":4}` {
		t.Errorf("%+v %s", got, got.Params)
	}
	got := o.want(http.StatusOK, http.MethodPut, taskPath(tid), `{"eta":5,"params":{"n":5}}`)
	if got.State != flockReserved || got.ETA != "5" || got.WID == 0 || string(got.Params) != `{"n":5}` {
		t.Errorf("%+v %s", got, got.Params)
	}
	o.lose(wid)
	if got := o.reserve(second); got.ETA != "4" || string(got.Params) != `{"n":5}` {
		t.Errorf("after the worker is lost: %+v %s", got, got.Params)
	}
	o.want(http.StatusOK, http.MethodPut, second+taskPath(tid), `{}`)
	if got := o.reserve(second); got.TID != tid || got.ETA != "5" || string(got.Params) != `{"n":5}` {
		t.Errorf("without new_eta: %+v %s", got, got.Params)
	}
	o.want(http.StatusOK, http.MethodPut, taskPath(tid), `{"eta":6,"params":null}`)
	o.want(http.StatusOK, http.MethodPut, second+taskPath(tid), `{"new_eta":7}`)
	if got := o.reserve(second); got.ETA != "7" || got.Params != nil {
		t.Errorf("with new_eta: %+v %s", got, got.Params)
	}
}

// A time that is set once the worker has reported counts, although the series does not know of the report.
func TestFlockSetWhileSettling(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	o := &old{t: t, client: client{
		handler: serve(t, sp, &health{flock: true}), sp: sp, m: manager.New(storetest.At(t, sp.Where, sp.Namespace, nil), "test", manager.Options{}),
	}}
	o.token = o.tokenOf(t, task.TokenOperate)
	tid := o.schedule(o.function("python"), "k", soon, "")
	wid := o.register("python")
	if _, err := series.RunNow(t.Context(), o.m, seriesKey(tid), manager.ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	o.reserve(wid)
	o.want(http.StatusOK, http.MethodPut, wid+taskPath(tid), `{"new_eta":9}`)
	if got := o.want(http.StatusOK, http.MethodGet, taskPath(tid), ""); got.State != flockScheduled || got.ETA != "9" {
		t.Errorf("%+v", got)
	}
	if got := o.want(http.StatusOK, http.MethodPut, taskPath(tid), `{"eta":`+late+`}`); got.State != flockScheduled || got.ETA != late {
		t.Errorf("%+v", got)
	}
	settle(t, sp)
	if got := o.want(http.StatusOK, http.MethodGet, taskPath(tid), ""); got.State != flockScheduled || got.ETA != late {
		t.Errorf("%+v", got)
	}
}

// A failure counts as the task's max_fails says, and its text is there; with a time the task goes on at that time.
func TestFlockErrors(t *testing.T) {
	t.Parallel()
	o := newOld(t)
	ctx := t.Context()
	if _, err := o.m.SetQueue(ctx, task.DefaultQueue, func(q *task.QueueSpec) error { return q.Set("default_max_fails", "1") }, manager.ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	fid, wid := o.function("python"), o.register("python")
	tid := o.schedule(fid, "k", "2", "")
	o.reserve(wid)
	o.want(http.StatusOK, http.MethodPut, wid+taskPath(tid), `{"error":"no route","new_eta":`+late+`}`)
	if got := o.becomes(tid, flockScheduled); got.Error != "no route" || got.ETA != late {
		t.Errorf("%+v", got)
	}
	wait.Eventually(t, time.Minute, func() bool { return len(o.series(tid).Live) == 0 }, "it is not settled")
	if n := o.series(tid).Number; n != 1 {
		t.Errorf("%d occurrences", n)
	}
	o.want(http.StatusOK, http.MethodPut, taskPath(tid), `{"eta":3}`)
	o.reserve(wid)
	o.want(http.StatusOK, http.MethodPut, wid+taskPath(tid), `{"error":"once"}`)
	if got := o.reserve(wid); got.TID != tid || got.ETA != "3" {
		t.Errorf("%+v", got)
	}
	if got := o.want(http.StatusOK, http.MethodGet, taskPath(tid), ""); got.Error != "once" || got.State != flockReserved {
		t.Errorf("%+v", got)
	}
	o.want(http.StatusOK, http.MethodPut, wid+taskPath(tid), `{"error":"`+strings.Repeat("ü", mostError)+`"}`)
	got := o.becomes(tid, flockOver)
	if len(got.Error) != mostError || got.WID != 0 {
		t.Errorf("%d bytes of error, %+v", len(got.Error), got.WID)
	}
	o.want(http.StatusConflict, http.MethodPut, taskPath(tid), `{"eta":5}`)
	if o.schedule(fid, "k", soon, "") != tid {
		t.Error("another number")
	}
	if got := o.reserve(wid); got.TID != tid || got.ETA != "1" {
		t.Errorf("%+v", got)
	}
}

// A task that is removed leaves nothing that waits, also if it begins at that moment, or its worker dies; a worker that has it completes it.
func TestFlockRemove(t *testing.T) {
	t.Parallel()
	o := newOld(t)
	fid, wid, second := o.function("python"), o.register("python"), o.register("python")
	remove := func(tid int64) {
		t.Helper()
		if w := o.send(http.MethodDelete, taskPath(tid), ""); w.Code != http.StatusNoContent || w.Body.Len() > 0 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	tid := o.schedule(fid, "due", soon, "")
	o.becomes(tid, flockDue)
	id := o.series(tid).Live[0]
	remove(tid)
	if got := o.task(t, id); got.EndState() != statemachine.Cancelled {
		t.Errorf("%+v", got)
	}
	tid = o.schedule(fid, "reserved", soon, "")
	o.reserve(wid)
	remove(tid)
	o.want(http.StatusOK, http.MethodPut, wid+taskPath(tid), `{"new_eta":2}`)
	o.want(http.StatusNotFound, http.MethodGet, taskPath(tid), "")
	tid = o.schedule(fid, "lost", soon, "")
	o.reserve(wid)
	id = o.series(tid).Live[0]
	remove(tid)
	if o.schedule(fid, "lost", late, "") != tid {
		t.Error("another number")
	}
	o.lose(wid)
	if w := o.send(http.MethodGet, second+"/task", ""); w.Code != http.StatusNoContent {
		t.Errorf("a task that was removed is reserved: %d %s", w.Code, w.Body)
	}
	wait.Eventually(t, time.Minute, func() bool {
		o.send(http.MethodGet, second+"/task", "")
		return o.task(t, id).EndState() == statemachine.Terminated
	}, "it is left")
	for i := range 20 {
		tid := o.schedule(fid, strconv.Itoa(i), soon, "") // a server begins it at the same time
		remove(tid)
	}
	wait.Eventually(t, time.Minute, func() bool {
		counts, err := o.sp.Store.Count(t.Context())
		return err == nil && counts[statemachine.Open] == 0 && counts[statemachine.Executed] == 0
	}, "something waits")
}

// What cannot be is named with its field, and nothing is stored.
func TestFlockRefusals(t *testing.T) {
	t.Parallel()
	o := newOld(t)
	fid := o.function("python")
	tid := o.schedule(fid, "k", late, "")
	wid := o.register("python")
	id := strconv.FormatInt(fid, 10)
	for _, tt := range []struct {
		method, path, text string
		code               int
		says               string
	}{
		{http.MethodPost, "/func", `{"env":"python"}`, 400, "name"},
		{http.MethodPost, "/func", `{"name":7,"env":"python"}`, 400, "field name"},
		{http.MethodPost, "/func", `{"name":"x"}`, 400, "field env"},
		{http.MethodPost, "/func", `{"name":"x","env":"a b"}`, 400, "letters, digits"},
		{http.MethodPost, "/func", `{"name":"x"`, 400, "not a JSON object"},
		{http.MethodPost, "/func", `[]`, 400, "not a JSON object"},
		{http.MethodPost, "/func", `null`, 400, "not a JSON object"},
		{http.MethodPost, "/func", "{\"name\":\"\xff\",\"env\":\"e\"}", 400, "UTF-8"},
		{http.MethodPost, "/func", ``, 400, "name"},
		{http.MethodPost, "/func", `{"name":"` + strings.Repeat("x", mostBody) + `"}`, 413, "1048576"},
		{http.MethodPost, "/task", `{"task_key":"k","eta":1}`, 400, "field fid"},
		{http.MethodPost, "/task", `{"fid":"` + id + `","task_key":"x","eta":1}`, 400, "field fid"},
		{http.MethodPost, "/task", `{"fid":1.5,"task_key":"x","eta":1}`, 400, "field fid"},
		{http.MethodPost, "/task", `{"fid":` + id + `,"task_key":"","eta":1}`, 400, "field task_key"},
		{http.MethodPost, "/task", `{"fid":` + id + `,"task_key":7,"eta":1}`, 400, "field task_key"},
		{http.MethodPost, "/task", `{"fid":` + id + `,"task_key":"a\u0000b","eta":1}`, 400, "NUL"},
		{http.MethodPost, "/task", `{"fid":` + id + `,"task_key":"\ud800","eta":1}`, 400, "surrogates"},
		{http.MethodPost, "/task", `{"fid":` + id + `,"task_key":"` + strings.Repeat("x", mostKey+1) + `","eta":1}`, 400, "16384 bytes"},
		{http.MethodPost, "/task", `{"fid":` + id + `,"task_key":"x"}`, 400, "field eta"},
		{http.MethodPost, "/task", `{"fid":` + id + `,"task_key":"x","eta":"1"}`, 400, "field eta"},
		{http.MethodPost, "/task", `{"fid":` + id + `,"task_key":"x","eta":0}`, 400, "1 for at once"},
		{http.MethodPost, "/task", `{"fid":` + id + `,"task_key":"x","eta":-1}`, 400, "field eta"},
		{http.MethodPost, "/task", `{"fid":` + id + `,"task_key":"x","eta":1e300}`, 400, "year 10000"},
		{http.MethodPost, "/task", `{"fid":` + id + `,"task_key":"x","eta":1795230670000}`, 400, "year 10000"},
		{http.MethodPost, "/task", `{"fid":` + id + `,"task_key":"x","eta":1,"params":[1]}`, 400, "field params"},
		{http.MethodPost, "/task", `{"fid":` + id + `,"task_key":"x","eta":1,"params":{"x":"` + strings.Repeat("x", mostParams) + `"}}`, 400, "32768 bytes"},
		{http.MethodPut, taskPath(tid), `{}`, 400, "field eta"},
		{http.MethodPut, taskPath(tid), `{"eta":true}`, 400, "field eta"},
		{http.MethodPut, taskPath(tid), `{"params":"x"}`, 400, "field params"},
		{http.MethodPut, "/task/1", `{"eta":1}`, 404, "POST /task"},
		{http.MethodPut, "/task/99999999999999999999", `{"eta":1}`, 404, "POST /task"},
		{http.MethodPost, "/worker", `{"pid":1,"cap":"python"}`, 400, "field ip"},
		{http.MethodPost, "/worker", `{"ip":"a/b","pid":1,"cap":"python"}`, 400, "field ip"},
		{http.MethodPost, "/worker", `{"ip":"::1","pid":-1,"cap":"python"}`, 400, "field pid"},
		{http.MethodPost, "/worker", `{"ip":"::1","pid":1,"cap":"a=b"}`, 400, "field cap"},
		{http.MethodPut, wid + taskPath(tid), `{"new_eta":0}`, 400, "field new_eta"},
		{http.MethodPut, wid + taskPath(tid), `{"error":{}}`, 400, "field error"},
		{http.MethodPut, wid + taskPath(tid), `{}`, 409, "not reserved"},
		{http.MethodPut, wid + "/task/0", `{}`, 409, "not reserved"},
		{http.MethodGet, "/task/x/y", ``, 404, "is not here"},
		{http.MethodPatch, taskPath(tid), ``, 405, "PATCH"},
		{http.MethodHead, wid + "/task", ``, 405, ""},
		{http.MethodGet, "/func", ``, 405, "GET"},
	} {
		w := o.send(tt.method, tt.path, tt.text)
		var got struct{ Error string }
		err := json.Unmarshal(w.Body.Bytes(), &got)
		if w.Code != tt.code || err != nil || !strings.Contains(got.Error, tt.says) || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %.80s: %d %s, want %d and %q", tt.method, tt.path, tt.text, w.Code, w.Body, tt.code, tt.says)
		}
		if allow := w.Header().Get("Allow"); (tt.code == http.StatusMethodNotAllowed) != (allow != "") {
			t.Errorf("%s %s: Allow %q", tt.method, tt.path, allow)
		}
	}
	if w := o.send(http.MethodPost, "/func", `name=x`, "Content-Type", "application/x-www-form-urlencoded"); w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for r, err := range o.m.Records(t.Context(), task.KindSeries, "") {
		if err != nil || r.Name != seriesKey(tid) {
			t.Errorf("%+v is stored, error %v", r, err)
		}
	}
}
