package httpapi

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// send sends a change; the body may be empty.
func (c *client) send(t *testing.T, method, path, text string) *httptest.ResponseRecorder {
	t.Helper()
	if text == "" {
		return c.do(t, method, path, "")
	}
	return c.do(t, method, path, text, "Content-Type", "application/json")
}

// A queue is made, changed, paused, resumed and removed; a dry run does nothing, and a refusal says why.
func TestChangesOfQueues(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenOperate)
	queue := func() task.Queue {
		q, err := c.m.Queue(t.Context(), "nightly")
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	c.send(t, http.MethodPost, "/queues", `{"name":"nightly","dry_run":true}`)
	wantProblem(t, c.send(t, http.MethodGet, "/queues/nightly", ""), http.StatusNotFound, "nightly")
	made := want[answer.QueueAdded](t, c.send(t, http.MethodPost, "/queues", `{"name":"nightly","set":{"threads":"3"}}`), http.StatusCreated)
	if made.Name != "nightly" || made.Threads != "3" {
		t.Errorf("%+v", made.Queue)
	}
	wantProblem(t, c.send(t, http.MethodPost, "/queues", `{"name":"nightly"}`), http.StatusConflict, "exists")
	for body, detail := range map[string]string{
		`{"set":{"threads":"many"}}`: "many", `{"set":{"colour":"red"}}`: "colour", `{"set":{"maxthreads":"1","threads":"-1"}}`: "threads",
		`{}`: "body",
	} {
		wantProblem(t, c.send(t, http.MethodPatch, "/queues/nightly", body), http.StatusUnprocessableEntity, detail)
	}
	if w := c.send(t, http.MethodPatch, "/queues/nightly", `{"set":{"colour":"red"}}`); !strings.Contains(w.Body.String(), `"message": "is not known`) {
		t.Errorf("%s", w.Body)
	}
	if q := queue(); q.MaxThreads != "unlimited" {
		t.Errorf("half of a change was made: %+v", q)
	}
	set := want[answer.Changes](t, c.send(t, http.MethodPatch, "/queues/nightly", `{"set":{"threads":"5"}}`), http.StatusOK)
	if set.Changed["threads"] != [2]string{"3", "5"} || queue().Threads != "5" {
		t.Errorf("%+v", set)
	}
	for _, verb := range []string{"pause", "resume"} {
		before := queue().Paused
		want[any](t, c.send(t, http.MethodPost, "/queues/nightly/"+verb+"?dry_run=true", ""), http.StatusOK)
		if queue().Paused != before {
			t.Error("a dry run changes it")
		}
		done := want[[]answer.QueuePaused](t, c.send(t, http.MethodPost, "/queues/nightly/"+verb, ""), http.StatusOK)
		if len(done) != 1 || done[0].Was != before || queue().Paused != (verb == "pause") {
			t.Errorf("%s: %+v", verb, done)
		}
	}
	if _, err := c.m.Submit(t.Context(), task.Spec{Source: "command:ls", Queue: "nightly"}); err != nil {
		t.Fatal(err)
	}
	wantProblem(t, c.send(t, http.MethodDelete, "/queues/nightly", ""), http.StatusConflict, "nightly")
	want[any](t, c.send(t, http.MethodPost, "/tasks/cancel", `{"tasks":["1"]}`), http.StatusOK)
	want[any](t, c.send(t, http.MethodDelete, "/queues/nightly?dry_run=true", ""), http.StatusOK)
	queue()
	if gone := want[answer.Removed](t, c.send(t, http.MethodDelete, "/queues/nightly", ""), http.StatusOK); !slices.Equal(gone.Removed, []string{"nightly"}) {
		t.Errorf("%+v", gone)
	}
	for path, method := range map[string]string{"": http.MethodDelete, "/pause": http.MethodPost} {
		wantProblem(t, c.send(t, method, "/queues/nightly"+path, ""), http.StatusNotFound, "nightly")
	}
}

// fleet is a site with a worker, and a client that may operate it.
func fleet(t *testing.T) (*storetest.Space, *client) {
	t.Helper()
	sp := storetest.New(t)
	sp.Register(t, "w1")
	c := &client{handler: serve(t, sp, &health{}), m: manager.New(storetest.At(t, sp.Where, sp.Namespace, nil), "test", manager.Options{})}
	_, c.fits = described(t, c.handler)
	c.token = c.tokenOf(t, task.TokenOperate)
	return sp, c
}

// A worker is ordered to drain, or to stop; all means those that the order meets.
func TestOrdersToWorkers(t *testing.T) {
	t.Parallel()
	_, c := fleet(t)
	order := func(path string) answer.Ordered {
		t.Helper()
		done := want[[]answer.Ordered](t, c.send(t, http.MethodPost, "/workers/"+path, ""), http.StatusOK)
		if len(done) != 1 || done[0].Name != "w1" {
			t.Fatalf("%s: %+v", path, done)
		}
		return done[0]
	}
	given := func() task.WorkerCommand {
		t.Helper()
		w, err := c.m.Worker(t.Context(), "w1")
		if err != nil {
			t.Fatal(err)
		}
		return w.Order
	}
	if o := order("w1/drain?dry_run=true"); o.Ordered || o.Note != "" || given() != task.NoCommand {
		t.Errorf("%+v", o)
	}
	if o := order("all/drain"); !o.Ordered || given() != task.CommandDrain {
		t.Errorf("%+v", o)
	}
	if o := order("w1/drain"); o.Ordered || !strings.Contains(o.Note, "before") {
		t.Errorf("%+v", o)
	}
	if o := order("all/undrain"); !o.Ordered || given() != task.NoCommand {
		t.Errorf("%+v", o)
	}
	if none := want[[]answer.Ordered](t, c.send(t, http.MethodPost, "/workers/all/undrain", ""), http.StatusOK); len(none) != 0 {
		t.Errorf("%+v", none)
	}
	if o := order("w1/stop"); !o.Ordered || given() != task.CommandStop {
		t.Errorf("%+v", o)
	}
	if o := order("w1/undrain"); o.Ordered || !strings.Contains(o.Note, "cannot be taken back") {
		t.Errorf("%+v", o)
	}
	wantProblem(t, c.send(t, http.MethodPost, "/workers/w2/drain", ""), http.StatusNotFound, `"w2"`)
}

// A node is limited, before it is known too, and forgotten once nothing is there.
func TestChangesOfNodes(t *testing.T) {
	t.Parallel()
	_, c := fleet(t)
	w, err := c.m.Worker(t.Context(), "w1")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{w.Node, "n9"} {
		set := want[answer.Changes](t, c.send(t, http.MethodPatch, "/nodes/"+name, `{"set":{"maxthreads":"2"}}`), http.StatusOK)
		if set.Changed["maxthreads"][1] != "2" {
			t.Errorf("%s: %+v", name, set)
		}
	}
	wantProblem(t, c.send(t, http.MethodPatch, "/nodes/n9", `{"set":{"maxthreads":"x"}}`), http.StatusUnprocessableEntity, "maxthreads")
	wantProblem(t, c.send(t, http.MethodDelete, "/nodes/"+w.Node, ""), http.StatusConflict, w.Node)
	want[answer.Removed](t, c.send(t, http.MethodDelete, "/nodes/n9", ""), http.StatusOK)
	wantProblem(t, c.send(t, http.MethodDelete, "/nodes/n9", ""), http.StatusNotFound, "n9")
}

// A token is made by one that may do so, is good at once, and bad once it is revoked.
func TestTokensOverHTTP(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	admin := c.token
	would := want[answer.TokenAdded](t, c.send(t, http.MethodPost, "/tokens", `{"name":"ci","role":"read","dry_run":true}`), http.StatusCreated)
	if would.Secret != "" {
		t.Errorf("%+v", would)
	}
	made := want[answer.TokenAdded](t, c.send(t, http.MethodPost, "/tokens", `{"name":"ci","role":"read","expires":"90d"}`), http.StatusCreated)
	if days := made.Expires.Sub(made.Created).Hours() / 24; days < 89.9 || days > 90 || made.By != "token a-admin" {
		t.Errorf("%+v", made.Token)
	}
	wantProblem(t, c.send(t, http.MethodPost, "/tokens", `{"name":"ci","role":"read"}`), http.StatusConflict, "exists")
	for body, detail := range map[string]string{
		`{"name":"x","role":"king"}`: "role", `{"name":"x","role":"read","expires":"90"}`: "90d", `{"name":"a b","role":"read"}`: "name",
	} {
		wantProblem(t, c.send(t, http.MethodPost, "/tokens", body), http.StatusUnprocessableEntity, detail)
	}
	c.token = made.Secret
	want[any](t, c.send(t, http.MethodGet, "/stats", ""), http.StatusOK)
	wantProblem(t, c.send(t, http.MethodGet, "/tokens", ""), http.StatusForbidden, "admin")
	c.token = admin
	if all := c.send(t, http.MethodGet, "/tokens", "").Body.String(); strings.Contains(all, made.Secret[13:]) || !strings.Contains(all, made.ID) {
		t.Errorf("%s", all)
	}
	want[answer.Removed](t, c.send(t, http.MethodDelete, "/tokens/ci", ""), http.StatusOK)
	wantProblem(t, c.send(t, http.MethodDelete, "/tokens/ci", ""), http.StatusNotFound, "ci")
	c.token = made.Secret
	wantProblem(t, c.send(t, http.MethodGet, "/stats", ""), http.StatusUnauthorized, "token")
}
