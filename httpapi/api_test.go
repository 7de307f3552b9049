package httpapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	validator "github.com/pb33f/libopenapi-validator"
	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// client asks a handler with a token.
type client struct {
	handler http.Handler
	m       *manager.Manager
	sp      *storetest.Space
	token   string
	fits    validator.Validator // the description that each answer must fit
}

// newClient is a client of a site of its own, with a token of that role.
func newClient(t *testing.T, role task.TokenRole) *client {
	t.Helper()
	return clientOf(t, storetest.New(t), role)
}

func clientOf(t *testing.T, sp *storetest.Space, role task.TokenRole) *client {
	t.Helper()
	c := &client{
		handler: serve(t, sp, &health{}),
		m:       manager.New(storetest.At(t, sp.Where, sp.Namespace, nil), "test", manager.Options{}),
		sp:      sp,
	}
	_, c.fits = described(t, c.handler)
	c.token = c.tokenOf(t, role)
	return c
}

// tokenOf makes a token.
func (c *client) tokenOf(t *testing.T, role task.TokenRole) string {
	t.Helper()
	secret, _, err := c.m.NewToken(t.Context(), task.TokenSpec{Name: "a-" + string(role), Role: role}, manager.ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// do sends a request; header are pairs of names and values.
func (c *client) do(t *testing.T, method, path, text string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, root+path, strings.NewReader(text))
	r.Header.Set("Authorization", "Bearer "+c.token)
	for pair := range slices.Chunk(header, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	if w.Code != http.StatusNotFound && w.Code != http.StatusMethodNotAllowed { // of paths that are not described
		fits(t, c.fits, r, w)
	}
	return w
}

// want checks an answer, and reads its body.
func want[T any](t *testing.T, w *httptest.ResponseRecorder, status int) (v T) {
	t.Helper()
	if w.Code != status {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return v
}

type opened struct {
	IDs, Existing []int64
	Job           int64
	Count         int
}

// A task is opened, or many as a job; the same submission again opens nothing.
func TestSubmit(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenSubmit)
	w := c.do(t, http.MethodPost, "/tasks", `{"source":"command:seq","input":"1 3"}`, "Content-Type", "application/json")
	if got := want[opened](t, w, http.StatusCreated); !slices.Equal(got.IDs, []int64{1}) || w.Header().Get("Location") != root+"/tasks/1" {
		t.Errorf("%+v at %s", got, w.Header())
	}
	lines := strings.Repeat(`{"source":"command:seq","argv":["1","3"],"max_fails":2,"meta":{"of":"test"}}`+"\n", 250)
	path := "/tasks?" + url.Values{"name": {"many"}, "window": {"5"}, "after": {"j1:any"}}.Encode()
	var first opened
	for i := range 2 {
		w := c.do(t, http.MethodPost, path, lines, "Content-Type", "application/jsonl", "Idempotency-Key", "mine")
		got := want[opened](t, w, http.StatusCreated)
		if i == 0 {
			first = got
		}
		if len(got.IDs) != 250 || !slices.Equal(got.IDs, first.IDs) || w.Header().Get("Location") != "" {
			t.Errorf("%+v, first %+v", got, first)
		}
	}
	job, err := c.m.Plan(t.Context(), task.PlanID(first.Job))
	if err != nil || job.Name != "many" || job.Window != 5 || len(job.After) != 1 || job.Total != 250 {
		t.Errorf("%+v, %v", job, err)
	}
	w = c.do(t, http.MethodPost, "/tasks", `{"source":"command:ls"}`, "Content-Type", "application/jsonl", "Idempotency-Key", "mine")
	wantProblem(t, w, http.StatusConflict, "Idempotency-Key mine was used for other tasks")
	keyed := func(work string) *httptest.ResponseRecorder {
		return c.do(t, http.MethodPost, "/tasks", `{"key":"nightly","key_until":"end","source":"command:`+work+`"}`)
	}
	if got, again := want[opened](t, keyed("ls"), http.StatusCreated), want[opened](t, keyed("ls"), http.StatusCreated); !slices.Equal(got.IDs, again.IDs) {
		t.Errorf("the same key opened %v and %v", got.IDs, again.IDs)
	}
	wantProblem(t, keyed("rm"), http.StatusConflict, `key "nightly"`)
	c.token = c.tokenOf(t, task.TokenAdmin) // the key is that of each token
	w = c.do(t, http.MethodPost, "/tasks", `{"source":"command:ls"}`, "Idempotency-Key", "mine")
	if got := want[opened](t, w, http.StatusCreated); len(got.IDs) != 1 {
		t.Errorf("%+v", got)
	}
}

// Nothing is opened of a submission of which a part cannot be; the problem names it.
func TestSubmitRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenSubmit)
	good := `{"source":"command:seq"}`
	for _, tt := range []struct {
		kind, path, text string
		status           int
		detail           string
	}{
		{"application/jsonl", "/tasks", good + "\n" + `{"source":"command:seq","max_fails":"some"}`, 422, "line 2: field max_fails"},
		{"application/jsonl", "/tasks", good + "\n{", 422, "line 2: not a JSON object"},
		{"application/jsonl", "/tasks", good + "\n" + `{"source":"command:seq","queue":"nightly"}`, 422, "line 2: "},
		{"application/json", "/tasks", `{"source":"command:seq","color":"red"}`, 422, `"color" is unknown`},
		{"application/json", "/tasks", good + good, 422, "something follows"},
		{"application/json", "/tasks", "", 422, "the body has no task"},
		{"application/json", "/tasks", `{"source":"command:cat","stdin":"file:/etc/passwd"}`, 422, "files of the server are not read"},
		{"application/json", "/tasks", `"` + strings.Repeat("x", mostBody) + `"`, 413, "at most 1048576 bytes"},
		{"text/csv", "/tasks", good, 415, `"text/csv": send application/json`},
		{"application/json", "/tasks?after=j9", good, 404, "no such plan"},
		{"application/json", "/tasks?after=7", good, 422, "after"},
		{"application/json", "/tasks?window=-1", good, 422, "query.window"},
		{"application/json", "/tasks?wait=true", good, 422, "query.wait"},
	} {
		w := c.do(t, http.MethodPost, tt.path, tt.text, "Content-Type", tt.kind)
		wantProblem(t, w, tt.status, tt.detail)
	}
	w := c.do(t, http.MethodPost, "/tasks?dry_run=true", good+"\n"+good, "Content-Type", "application/jsonl")
	if got := want[opened](t, w, http.StatusCreated); got.Count != 2 || len(got.IDs) != 0 {
		t.Errorf("%+v", got)
	}
	if id, err := c.m.NewestTask(t.Context()); id != 0 || err != nil {
		t.Errorf("task %d was opened, %v", id, err)
	}
}

// All pages together are all tasks that fit.
func TestListPages(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenSubmit)
	want[opened](t, c.do(t, http.MethodPost, "/tasks", strings.Repeat(`{"source":"command:seq","meta":{"a":"b"}}`+"\n", 23), "Content-Type", "application/jsonl"), http.StatusCreated)
	want[opened](t, c.do(t, http.MethodPost, "/tasks", `{"source":"command:seq","hold":"later"}`), http.StatusCreated)
	for _, tt := range []struct {
		query string
		n     int
	}{{"", 24}, {"state=open", 23}, {"state=blocked", 1}, {"attr=a%3Db", 23}, {"tasks=j1", 23}, {"tasks=3-9,20", 8}, {"queue=none", 0}} {
		seen := map[int64]bool{}
		for path := "/tasks?limit=5&" + tt.query; path != ""; {
			w := c.do(t, http.MethodGet, path, "")
			for _, one := range want[[]struct{ ID int64 }](t, w, http.StatusOK) {
				if seen[one.ID] {
					t.Errorf("%s: task %d twice", tt.query, one.ID)
				}
				seen[one.ID] = true
			}
			link, _, _ := strings.Cut(w.Header().Get("Link"), ">; rel=\"next\"")
			path = strings.TrimPrefix(link, "<"+root)
		}
		if len(seen) != tt.n {
			t.Errorf("%s: %d tasks, want %d", tt.query, len(seen), tt.n)
		}
	}
	for query, detail := range map[string]string{
		"state=old": `"old" is not a state`, "limit=0": "query.limit", "attr=x": `"x" has no =`, "match=(": "not a regular expression",
		"cursor=x": "cursor", "tasks=0": "tasks", "color=red": "query.color", "state=open&state=failed": "query.state is given more than once",
	} {
		wantProblem(t, c.do(t, http.MethodGet, "/tasks?"+query, ""), http.StatusUnprocessableEntity, detail)
	}
}

// ending are the operations of the description, without a stream that does not end.
func ending(t *testing.T, h http.Handler) (list []operation) {
	t.Helper()
	document, _ := described(t, h)
	model, err := document.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range model.Model.Paths.PathItems.FromOldest() {
		for method, op := range item.GetOperations().FromOldest() {
			if op.OperationId != "follow-events" {
				list = append(list, operation{
					method: strings.ToUpper(method), path: strings.TrimPrefix(path, root), id: op.OperationId, tag: op.Tags[0],
				})
			}
		}
	}
	return list
}

// Each operation lets through the roles that may do it, and no other.
func TestRoles(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	needs := func(op *operation) task.TokenRole {
		switch {
		case op.tag == "work":
			return task.TokenWork
		case op.id == "submit-tasks", op.id == "submit-plan", op.id == "put-blob":
			return task.TokenSubmit
		case strings.HasPrefix(op.path, "/tokens"), op.path == "/changes":
			return task.TokenAdmin
		case op.method == http.MethodGet:
			return task.TokenRead
		}
		return task.TokenOperate
	}
	for _, role := range []task.TokenRole{task.TokenAdmin, task.TokenOperate, task.TokenSubmit, task.TokenRead, task.TokenWork} {
		if role != task.TokenAdmin {
			c.token = c.tokenOf(t, role)
		}
		for _, op := range ending(t, c.handler) {
			need, name := needs(&op), "default"
			if need == task.TokenWork {
				name = "a-work" // its own
			}
			w := c.do(t, op.method, strings.NewReplacer("{id}", "1", "{name}", name, "{job}", "j1", "{version}", "sum", "{key}", "k", "{sha256}", strings.Repeat("0", 64)).Replace(op.path), "")
			if refused := w.Code == http.StatusForbidden; refused == role.May(need) || w.Code == http.StatusUnauthorized {
				t.Errorf("%s as %s: %d %s", op.id, role, w.Code, w.Body)
			}
		}
	}
}

// Without a token that fits nothing is told, but what can be asked for; and who asks too often waits.
func TestCallers(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenRead)
	good := c.token
	for _, token := range []string{"", "tdf_x_y", good + "x", strings.ToUpper(good)} {
		c.token = token
		w := c.do(t, http.MethodGet, "/tasks", "")
		wantProblem(t, w, http.StatusUnauthorized, "send Authorization: Bearer")
		if w.Header().Get("WWW-Authenticate") == "" || token != "" && strings.Contains(w.Body.String(), token) {
			t.Errorf("%v %s", w.Header(), w.Body)
		}
	}
	c.token = good
	if w := c.do(t, http.MethodGet, "/stats", "", requestHeader, "mine-7"); w.Header().Get(requestHeader) != "mine-7" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%v", w.Header())
	}
	for _, odd := range []string{"", "a b", "x\"y", strings.Repeat("x", 65)} {
		if id := c.do(t, http.MethodGet, "/stats", "", requestHeader, odd).Header().Get(requestHeader); id == odd || len(id) < 20 {
			t.Errorf("%q became %q", odd, id)
		}
	}
	now := time.Now()
	c.handler = serve(t, c.sp, &health{now: func() time.Time { return now }})
	for range 2 * perSecond {
		if w := c.do(t, http.MethodGet, "/queues/default", ""); w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	w := c.do(t, http.MethodGet, "/queues/default", "")
	wantProblem(t, w, http.StatusTooManyRequests, "asks more than 100 times a second")
	if w.Header().Get("Retry-After") != "1" {
		t.Errorf("%v", w.Header())
	}
	if now = now.Add(time.Second / perSecond); c.do(t, http.MethodGet, "/stats", "").Code != http.StatusOK {
		t.Error("it is refused a moment later too")
	}
	if err := c.m.RevokeToken(t.Context(), "a-read", manager.ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	wantProblem(t, c.do(t, http.MethodGet, "/stats", ""), http.StatusUnauthorized, "send Authorization")
}

// Requests that make no sense are refused by every operation: nothing fails, and nothing changes.
func TestMalformed(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	operations := ending(t, c.handler)
	odd := []string{
		"", "0", "-1", "99999999999999999999", "j0", "j1", "all", "last", "\x00", "é", "../..", "%", "a=b", "{}", "[]", "null", `{"tasks":["all"]}`,
		`{"tasks":[1]}`, `{"yes":"perhaps"}`, `{"source":7}`, `{"source":"command:"}`, `{"source":null,"meta":[[]]}`, "[" + strings.Repeat("[", 5000),
		`{"state":["old"]}`, `"`, "\xff\xfe", strings.Repeat("9", 300), "(", "true", "1e400", `{"argv":"x","input":"y"}`,
		"steps: {a: {needs: [a]}}", `{"reason":[]}`, `{"dry_run":"yes"}`, "- - -", "a=b,c",
	}
	before := want[json.RawMessage](t, c.do(t, http.MethodGet, "/stats", ""), http.StatusOK)
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.SampledFrom(odd)
		op := rapid.SampledFrom(operations).Draw(rt, "operation")
		path := op.path
		for _, name := range []string{"{id}", "{name}", "{job}", "{version}", "{sha256}"} {
			path = strings.ReplaceAll(path, name, url.PathEscape(strings.ReplaceAll(value.Draw(rt, name), "..", "x")))
		}
		query := url.Values{}
		for range rapid.IntRange(0, 3).Draw(rt, "queries") {
			name := rapid.SampledFrom([]string{"tasks", "state", "match", "attr", "limit", "cursor", "window", "after", "round", "follow", "all", "param", "unused_for", "timeout", "worker", "x"}).Draw(rt, "query")
			if name != "follow" { // it does not end
				query.Add(name, value.Draw(rt, "value"))
			}
		}
		r := httptest.NewRequestWithContext(t.Context(), op.method, root, strings.NewReader(value.Draw(rt, "body")))
		r.URL = &url.URL{Path: root + path, RawQuery: query.Encode()}
		r.Header.Set("Authorization", "Bearer "+c.token)
		r.Header.Set("Content-Type", rapid.SampledFrom([]string{"", "application/json", "application/jsonl", "application/yaml", "text/plain", ";", "\x00"}).Draw(rt, "type"))
		w := httptest.NewRecorder()
		c.handler.ServeHTTP(w, r)
		for w.Code == http.StatusTooManyRequests {
			w = httptest.NewRecorder()
			c.handler.ServeHTTP(w, r)
		}
		if w.Code >= http.StatusInternalServerError {
			rt.Fatalf("%s %s: %d %s", r.Method, r.URL, w.Code, w.Body)
		}
	})
	if after := want[json.RawMessage](t, c.do(t, http.MethodGet, "/stats", ""), http.StatusOK); string(after) != string(before) {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
