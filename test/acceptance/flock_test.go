package acceptance

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// flockClient speaks to the interface of Flock, as one of its clients or workers.
type flockClient struct{ url, token string }

// flockAnswer is what that answers.
type flockAnswer struct {
	code int
	text string

	FID     int64           `json:"fid"`
	TID     int64           `json:"tid"`
	WID     int64           `json:"wid"`
	TaskKey string          `json:"task_key"`
	ETA     json.Number     `json:"eta"`
	Params  json.RawMessage `json:"params"`
	Error   string          `json:"error"`
}

// flockServer starts a server with the interface of Flock, and returns who speaks to it by tokens for clients and for workers.
func (w *world) flockServer(t *testing.T, set ...string) (d *daemon, client, worker flockClient) {
	t.Helper()
	d, url := w.httpServer(t, append([]string{"http.listen=127.0.0.1:0", "http.flock=true"}, set...)...)
	return d, w.flockClient(t, url, "operate"), w.flockClient(t, url, "work")
}

func (w *world) flockClient(t *testing.T, url, role string) flockClient {
	t.Helper()
	return flockClient{url, strings.TrimSpace(first(w.manage(t, 0, "token", "add", role+"-"+rand.Text(), "--role", role)))}
}

func (c flockClient) send(t *testing.T, method, path, body string) flockAnswer {
	t.Helper()
	a, err := c.try(t.Context(), method, path, body)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", method, path, err, a.text)
	}
	return a
}

func (c flockClient) try(ctx context.Context, method, path, body string) (a flockAnswer, err error) {
	code, kind, text, err := c.reply(ctx, method, path, body)
	a.code, a.text = code, string(text)
	if err == nil && strings.Contains(kind, "json") {
		err = json.Unmarshal(text, &a)
	}
	return a, err
}

// reply is what a request gets: the status, the type and the text.
func (c flockClient) reply(ctx context.Context, method, path, body string) (code int, kind string, text []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", nil, err
	}
	req.Close = true
	req.SetBasicAuth("anybody", c.token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer reply.Body.Close()
	text, err = io.ReadAll(reply.Body)
	return reply.StatusCode, reply.Header.Get("Content-Type"), text, err
}

// ask sends a request, again while there are too many.
func (c flockClient) ask(t *testing.T, want int, method, path, body string) (a flockAnswer) {
	t.Helper()
	wait.Eventually(t, patience, func() bool {
		a = c.send(t, method, path, body)
		return a.code != http.StatusTooManyRequests
	}, "it is asked too often")
	if a.code != want {
		t.Fatalf("%s %s %s: %d, want %d\n%s", method, path, body, a.code, want, a.text)
	}
	return a
}

func (c flockClient) function(t *testing.T, name, env string) (fid int64) {
	t.Helper()
	return c.ask(t, http.StatusCreated, http.MethodPost, "/func", fmt.Sprintf(`{"name":%q,"env":%q}`, name, env)).FID
}

func (c flockClient) task(t *testing.T, fid int64, key string, eta time.Time) (tid int64) {
	t.Helper()
	return c.ask(t, http.StatusCreated, http.MethodPost, "/task", fmt.Sprintf(`{"fid":%d,"task_key":%q,"eta":%d}`, fid, key, eta.Unix())).TID
}

func (c flockClient) worker(t *testing.T, env string) (wid int64) {
	t.Helper()
	return c.ask(t, http.StatusCreated, http.MethodPost, "/worker", fmt.Sprintf(`{"ip":"10.0.0.5","pid":4242,"cap":%q}`, env)).WID
}

// reserve asks until there is a task for the worker.
func (c flockClient) reserve(t *testing.T, wid int64) (a flockAnswer) {
	t.Helper()
	path := fmt.Sprintf("/worker/%d/task", wid)
	wait.Eventually(t, patience, func() bool {
		if a = c.send(t, http.MethodGet, path, ""); a.code == http.StatusNotFound {
			t.Fatalf("worker %d: %s", wid, a.text)
		}
		return a.code == http.StatusOK
	}, "worker %d gets nothing", wid)
	return a
}

// is reads a task.
func (c flockClient) is(t *testing.T, tid int64) flockAnswer {
	t.Helper()
	return c.ask(t, http.StatusOK, http.MethodGet, fmt.Sprintf("/task/%d", tid), "")
}

// F16: functions, the schedule, workers and what they hold outlast a server that is killed: another one knows them all.
func TestFlockOutlastsItsServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const lease = "server.worker_timeout=60" // longer than another server takes to start
	killed, client, worker := w.flockServer(t, lease)
	w.leasePublished(t)
	now, later := time.Now(), time.Now().Add(time.Hour)
	fid := client.function(t, "crawl", "python")
	held, waits := client.task(t, fid, "held", now), client.task(t, fid, "waits", later)
	wid := worker.worker(t, "python")
	if got := worker.reserve(t, wid); got.TID != held || got.FID != fid || got.WID != wid || got.TaskKey != "held" {
		t.Errorf("it got %+v", got)
	}
	w.kill(t, killed)
	_, url := w.httpServer(t, "http.listen=127.0.0.1:0", "http.flock=true", lease)
	client.url, worker.url = url, url
	if got := client.is(t, held); got.WID != wid {
		t.Errorf("reserved by %d: %s", got.WID, got.text)
	}
	if got := client.is(t, waits); got.WID != 0 || got.ETA != json.Number(strconv.FormatInt(later.Unix(), 10)) {
		t.Errorf("the task that waits: %s", got.text)
	}
	client.ask(t, http.StatusOK, http.MethodPost, "/func", `{"name":"crawl","env":"python"}`)
	client.ask(t, http.StatusConflict, http.MethodPost, "/task", fmt.Sprintf(`{"fid":%d,"task_key":"waits","eta":1}`, fid))
	worker.ask(t, http.StatusNoContent, http.MethodPut, fmt.Sprintf("/worker/%d", wid), "")
	done := fmt.Sprintf("/worker/%d/task/%d", wid, held)
	worker.ask(t, http.StatusOK, http.MethodPut, done, fmt.Sprintf(`{"new_eta":%d}`, now.Unix()+1))
	if got := worker.reserve(t, wid); got.TID != held || got.ETA != json.Number(strconv.FormatInt(now.Unix()+1, 10)) {
		t.Errorf("the next time: %s", got.text)
	}
	worker.ask(t, http.StatusOK, http.MethodPut, done, `{}`)
	w.sound(t)
}

// F05, F08: a task is reserved when it is due and not before; completed with another time it is due again then, under its number.
func TestFlockTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, client, worker := w.flockServer(t)
	eta := time.Now().Add(2 * time.Second)
	tid, wid := client.task(t, client.function(t, "crawl", "python"), "k", eta), worker.worker(t, "python")
	for range 2 {
		got := worker.reserve(t, wid)
		if now := w.redisNow(t); got.TID != tid || at(now).Before(eta.Truncate(time.Second)) {
			t.Errorf("at %v it got %s", at(now), got.text)
		}
		eta = time.Now().Add(2 * time.Second)
		worker.ask(t, http.StatusOK, http.MethodPut, fmt.Sprintf("/worker/%d/task/%d", wid, tid), fmt.Sprintf(`{"new_eta":%d}`, eta.Unix()))
		if got := client.is(t, tid); got.WID != 0 || got.ETA != json.Number(strconv.FormatInt(eta.Unix(), 10)) {
			t.Errorf("after it was completed: %s", got.text)
		}
	}
	w.archived(t, 1, sm.Succeeded) // each time is a task of its own
	w.sound(t)
}

// F11, F15: a worker that is silent is dead. What it held goes to another one, with its eta; what it completes then counts for nothing.
func TestFlockDeadWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, client, worker := w.flockServer(t, shortLeaseSet)
	w.leasePublished(t)
	now := time.Now()
	fid := client.function(t, "crawl", "java")
	tid := client.task(t, fid, "k", now)
	dead := worker.worker(t, "java")
	if got := worker.reserve(t, dead); got.TID != tid {
		t.Errorf("it got %s", got.text)
	}
	wait.Eventually(t, patience, func() bool { return client.is(t, tid).WID == 0 }, "the worker is not dead")
	lives := worker.worker(t, "java")
	if got := worker.reserve(t, lives); got.TID != tid || got.ETA != json.Number(strconv.FormatInt(now.Unix(), 10)) {
		t.Errorf("the other worker got %s", got.text)
	}
	worker.ask(t, http.StatusNotFound, http.MethodPut, fmt.Sprintf("/worker/%d", dead), "")
	worker.ask(t, http.StatusNotFound, http.MethodGet, fmt.Sprintf("/worker/%d/task", dead), "")
	late := worker.send(t, http.MethodPut, fmt.Sprintf("/worker/%d/task/%d", dead, tid), `{"new_eta":7}`)
	if late.code != http.StatusNotFound && late.code != http.StatusConflict {
		t.Errorf("the late completion: %d %s", late.code, late.text)
	}
	if got := client.is(t, tid); got.WID != lives {
		t.Errorf("after the late completion: %s", got.text)
	}
	done, next := fmt.Sprintf("/worker/%d/task/%d", lives, tid), now.Unix()+3600
	worker.ask(t, http.StatusOK, http.MethodPut, done, fmt.Sprintf(`{"new_eta":%d}`, next))
	if got := client.is(t, tid); got.WID != 0 || got.ETA != json.Number(strconv.FormatInt(next, 10)) {
		t.Errorf("after it was completed: %s", got.text)
	}
	worker.ask(t, http.StatusConflict, http.MethodPut, done, `{"new_eta":8}`)
	w.sound(t)
}

// F06: two workers, each at a server of its own, ask for 100 due tasks at once: each is reserved once.
func TestFlockRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, client, one := w.flockServer(t)
	_, url := w.httpServer(t, "http.listen=127.0.0.1:0", "http.flock=true")
	two := w.flockClient(t, url, "work")
	fid := client.function(t, "crawl", "python")
	left := map[int64]bool{}
	for i := range 100 {
		left[client.task(t, fid, fmt.Sprint("key ", i), time.Now())] = true
	}
	var mu sync.Mutex
	take := func(tid int64) (known bool, n int) {
		mu.Lock()
		defer mu.Unlock()
		known = left[tid]
		delete(left, tid)
		return known, len(left)
	}
	work := func(c flockClient, path string) error {
		for {
			got, err := c.try(t.Context(), http.MethodGet, path, "")
			if err != nil {
				return err
			}
			known, n := take(got.TID)
			if got.code == http.StatusOK && !known {
				return fmt.Errorf("task %d is reserved twice", got.TID)
			}
			if n == 0 {
				return nil
			}
		}
	}
	done := make(chan error, 2)
	for _, c := range []flockClient{one, two} {
		path := fmt.Sprintf("/worker/%d/task", c.worker(t, "python"))
		go func() { done <- work(c, path) }()
	}
	for range cap(done) {
		if err := wait.Receive(t, time.Minute, done, "tasks are left"); err != nil {
			t.Error(err)
		}
	}
	w.sound(t)
}

// The commands of docs/FLOCK.md do what it says, with curl and jq.
func TestFlockDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, url := w.httpServer(t, "http.listen=127.0.0.1:0", "http.flock=true")
	stdout, stderr, code := w.shell(t, blocks(t, "FLOCK.md"), "site.cfg", w.cfg, "http://127.0.0.1:7480", url)
	const want = `["crawl","python"] ["https://example.org/feed",{"etag":"a1"},0,true] true [1700000000.25,"a2"] 204 ` +
		`["https://example.org/feed",1700000000.25,{"etag":"a2","pages":[1,2]}] 200 [true,0,"scheduled"] 1 `
	if code != 0 || stdout != want {
		t.Errorf("it ended with %d:\n%s\n%s", code, stdout, stderr)
	}
	w.sound(t)
}
