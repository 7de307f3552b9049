package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/worktest"
	"github.com/tdf-go/tdf/task"
)

// changing are requests that change something, by the ids of operations, and what the log of changes says of each: of submissions nothing.
var changing = []struct{ id, method, path, body, want string }{
	{"submit-tasks", http.MethodPost, "/tasks", `{"source":"command:echo","input":"SECRET","variables":{"A":"SECRET"}}`, ""},
	{"hold-tasks", http.MethodPost, "/tasks/hold", `{"tasks":["2","77"],"reason":"late"}`, "hold 2 *1 late"},
	{"release-tasks", http.MethodPost, "/tasks/release", `{"queue":"default","state":["blocked"]}`, "release 2 (all state=blocked queue=default) *1"},
	{"attr-tasks", http.MethodPost, "/tasks/attr", `{"tasks":["2"],"set":{"b":"SECRET","a":"SECRET"}}`, "attr 2 (set a,b) *1"},
	{"params-tasks", http.MethodPost, "/tasks/params", `{"tasks":["2"],"params":{"a":"SECRET"}}`, "params 2 *1"},
	{"cancel-tasks", http.MethodPost, "/tasks/cancel", `{"tasks":["j1"]}`, "cancel 2 (j1) *1"},
	{"retry-tasks", http.MethodPost, "/tasks/retry", `{"tasks":["1"]}`, "retry 1 *1"},
	{"replay-task", http.MethodPost, "/tasks/1/replay", "", "replay 1 *1"},
	{"add-queue", http.MethodPost, "/queues", `{"name":"q","set":{"threads":"2"}}`, "queue add q (set threads) *1"},
	{"set-queue", http.MethodPatch, "/queues/q", `{"set":{"threads":"3"}}`, "queue set q (set threads) *1"},
	{"pause-queue", http.MethodPost, "/queues/q/pause", "", "queue pause q *1"},
	{"resume-queue", http.MethodPost, "/queues/q/resume", "", "queue resume q *1"},
	{"remove-queue", http.MethodDelete, "/queues/q", "", "queue rm q *1"},
	{"set-node", http.MethodPatch, "/nodes/n9", `{"set":{"maxthreads":"2"}}`, "node set n9 (set maxthreads) *1"},
	{"remove-node", http.MethodDelete, "/nodes/n9", "", "node rm n9 *1"},
	{"drain-worker", http.MethodPost, "/workers/all/drain", "", "worker drain w1 *1"},
	{"undrain-worker", http.MethodPost, "/workers/w1/undrain", "", "worker undrain w1 *1"},
	{"stop-worker", http.MethodPost, "/workers/w1/stop", "", "worker stop w1 *1"},
	{"submit-plan", http.MethodPost, "/plans", "steps: {a: {source: 'command:echo', input: SECRET}}", ""},
	{"hold-plan", http.MethodPost, "/plans/2/hold", `{"reason":"late"}`, "plan hold j2 *1 late"},
	{"resume-plan", http.MethodPost, "/plans/2/resume", "", "plan resume j2 *1"},
	{"", http.MethodPost, "/tasks/cancel", `{"tasks":["j2"]}`, "cancel 5 (j2) *1"},
	{"retry-plan", http.MethodPost, "/plans/2/retry", "", "plan retry j2 *1"},
	{"cancel-plan", http.MethodPost, "/plans/2/cancel", "", "plan cancel j2 *1"},
	{
		"add-series", http.MethodPost, "/series", `{"key":"s","task":{"source":"command:echo","input":"SECRET"},"set":{"every":"1h","start":"+1h"}}`,
		"series add s (set every,start) *1",
	},
	{"set-series", http.MethodPatch, "/series/s", `{"set":{"overlap":"queue"}}`, "series set s (set overlap) *1"},
	{"pause-series", http.MethodPost, "/series/s/pause", "", "series pause s *1"},
	{"resume-series", http.MethodPost, "/series/s/resume", "", "series resume s *1"},
	{"run-series", http.MethodPost, "/series/s/run", "", "series run s *1"},
	{"remove-series", http.MethodDelete, "/series/s", "", "series rm s *1"},
	{"add-token", http.MethodPost, "/tokens", `{"name":"ci","role":"read"}`, "token add ci *1"},
	{"revoke-token", http.MethodDelete, "/tokens/ci", "", "token rm ci *1"},
}

// said are the entries of the log of changes, the oldest first.
func (c *client) said(t *testing.T) (list []string) {
	t.Helper()
	for e, err := range c.m.Changes(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		asked := ""
		if e.Asked != "" {
			asked = " (" + e.Asked + ")"
		}
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s: %s %s%s *%d %s", e.By, e.Request, e.What, e.On, asked, e.Count, e.Reason)))
	}
	slices.Reverse(list)
	return list
}

// Each operation that changes something leaves one entry, with the token and the request, and without anything secret; one that is refused,
// or reads, leaves none.
func TestEachOperationLeavesAnEntry(t *testing.T) {
	t.Parallel()
	sp, c := fleet(t)
	c.token = c.tokenOf(t, task.TokenAdmin)
	if _, err := c.m.Submit(t.Context(), task.Spec{Program: "p", Timeout: 60}); err != nil {
		t.Fatal(err)
	}
	worktest.Drain(t, sp.Store, worktest.Echo)
	secret := c.token
	var want []string
	for i, op := range changing {
		kind := "application/json"
		if op.id == "submit-plan" {
			kind = planFile
		}
		w := c.do(t, op.method, op.path, op.body, "Content-Type", kind, requestHeader, fmt.Sprint("r-", i))
		if w.Code >= http.StatusBadRequest {
			t.Errorf("%s: %d %s", op.id, w.Code, w.Body)
		}
		if op.want != "" {
			want = append(want, fmt.Sprintf("token a-admin r-%d: %s", i, op.want))
		}
		if said := c.said(t); !slices.Equal(said, want) {
			t.Fatalf("%s left %q, want %q", op.id, said, want[max(0, len(want)-1):])
		}
	}
	for _, text := range sp.Raw.LRange(t.Context(), sp.Key("changes"), 0, -1).Val() {
		if strings.Contains(text, "SECRET") || strings.Contains(text, secret[13:]) {
			t.Error(text)
		}
	}
	// What is put under its hash changes nothing before a task names it; errands go to workers that run programs: TestPrograms.
	others := []string{"put-blob", "remove-program", "collect-programs"}
	for _, op := range ending(t, c.handler) {
		known := slices.ContainsFunc(changing, func(c struct{ id, method, path, body, want string }) bool { return c.id == op.id })
		if !known && op.method != http.MethodGet && op.method != http.MethodHead && op.tag != workTag && !slices.Contains(others, op.id) {
			t.Errorf("no case for %s", op.id)
		}
	}
	for _, body := range []string{`{"tasks":["77"]}`, `{"tasks":["1"]}`, `{"tasks":["all"],"dry_run":true}`, `{"state":["old"]}`} {
		c.send(t, http.MethodPost, "/tasks/hold", body)
	}
	c.send(t, http.MethodDelete, "/queues/default", "")
	c.send(t, http.MethodPost, "/tasks?dry_run=true", `{"source":"command:echo"}`)
	if n := len(c.said(t)); n != len(want) {
		t.Errorf("what changed nothing left %q", c.said(t)[len(want):])
	}
}

// The log comes in pages that a request follows, and what is asked for of it; administrators read it.
func TestChangesOverHTTP(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	for i := range 5 {
		c.send(t, http.MethodPost, "/queues", fmt.Sprintf(`{"name":"q%d"}`, i))
	}
	var names []string
	for path := "/changes?limit=2&by=token+a-admin&since=1d"; path != ""; {
		w := c.do(t, http.MethodGet, path, "")
		for _, e := range want[[]task.ChangeEntry](t, w, http.StatusOK) {
			names = append(names, fmt.Sprint(e.ID, e.On))
		}
		link, _, _ := strings.Cut(strings.TrimPrefix(w.Header().Get("Link"), "<"+root), ">")
		path = link
	}
	if got := strings.Join(names, " "); got != "5q4 4q3 3q2 2q1 1q0" {
		t.Error(got)
	}
	for query, n := range map[string]int{"on=q3": 1, "on=q9": 0, "by=token+x": 0, "since=2026-01-01T00:00:00Z": 5, "before=3": 2} {
		if got := want[[]task.ChangeEntry](t, c.do(t, http.MethodGet, "/changes?"+query, ""), http.StatusOK); len(got) != n {
			t.Errorf("%s: %+v", query, got)
		}
	}
	for _, odd := range []string{"yesterday", "inf"} {
		wantProblem(t, c.do(t, http.MethodGet, "/changes?since="+odd, ""), http.StatusUnprocessableEntity, "how long ago")
	}
	c.token = c.tokenOf(t, task.TokenOperate)
	wantProblem(t, c.do(t, http.MethodGet, "/changes", ""), http.StatusForbidden, "this takes admin")
}
