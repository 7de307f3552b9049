package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// twoSteps is a plan file with a parameter.
const twoSteps = `params: {of: 3}
name: numbers to ${params.of}
on_failure: continue
steps:
  list: {source: "command:seq", input: "${params.of}"}
  sum: {source: "command:wc", needs: [list]}
`

type madePlan struct {
	Plan   task.PlanID
	Tasks  int
	DryRun bool `json:"dry_run"`
}

// submitPlan sends a plan file; header are pairs of names and values.
func (c *client) submitPlan(t *testing.T, query, text string, header ...string) madePlan {
	t.Helper()
	w := c.do(t, http.MethodPost, "/plans"+query, text, append(header, "Content-Type", "application/yaml")...)
	made := want[madePlan](t, w, http.StatusCreated)
	location := w.Header().Get("Location")
	if wanted := fmt.Sprintf("%s/plans/%d", root, made.Plan); location != wanted && !made.DryRun || made.DryRun && location != "" {
		t.Errorf("%+v at %q", made, location)
	}
	return made
}

type shownPlan struct {
	task.Plan

	Estimate *manager.PlanEstimate
	Tasks    []manager.PlannedTask
	Running  *int64 // of a job
}

// A plan is made of a file, once for each key, and shown.
func TestSubmitPlan(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenSubmit)
	if made := c.submitPlan(t, "?dry_run=true", twoSteps); made.Plan != 0 || made.Tasks != 2 || !made.DryRun {
		t.Errorf("%+v", made)
	}
	first := c.submitPlan(t, "?param=of%3D5", twoSteps, "Idempotency-Key", "mine")
	if again := c.submitPlan(t, "?param=of%3D5", twoSteps, "Idempotency-Key", "mine"); again != first || first.Tasks != 2 || first.DryRun {
		t.Errorf("%+v, first %+v", again, first)
	}
	w := c.do(t, http.MethodPost, "/plans?param=of%3D6", twoSteps, "Content-Type", "application/yaml", "Idempotency-Key", "mine")
	wantProblem(t, w, http.StatusConflict, fmt.Sprintf("Idempotency-Key mine was used for plan %d", first.Plan))
	if other := c.submitPlan(t, "", twoSteps); other.Plan == first.Plan {
		t.Errorf("without a key: %+v", other)
	}
	c.token = c.tokenOf(t, task.TokenAdmin) // the key is that of each token
	if other := c.submitPlan(t, "", twoSteps, "Idempotency-Key", "mine"); other.Plan == first.Plan {
		t.Errorf("of another token: %+v", other)
	}
	if list := want[[]task.Plan](t, c.do(t, http.MethodGet, "/plans", ""), http.StatusOK); len(list) != 3 || list[2].Name != "numbers to 5" {
		t.Errorf("%+v", list)
	}
	if list := want[[]task.Plan](t, c.do(t, http.MethodGet, "/plans?limit=1", ""), http.StatusOK); len(list) != 1 {
		t.Errorf("%+v", list)
	}
	p := want[shownPlan](t, c.do(t, http.MethodGet, fmt.Sprint("/plans/", first.Plan), ""), http.StatusOK)
	if p.State != task.PlanReady || len(p.Tasks) != 2 || p.Estimate == nil || len(p.Estimate.CriticalPath) != 2 || len(p.Tasks[1].Needs) != 1 {
		t.Errorf("%+v", p)
	}
}

// A job is shown in the place of a plan, and is not listed among plans.
func TestShowPlanOfAJob(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenSubmit)
	job := want[opened](t, c.do(t, http.MethodPost, "/tasks", `{"source":"command:seq"}`), http.StatusCreated).Job
	if p := want[shownPlan](t, c.do(t, http.MethodGet, fmt.Sprint("/plans/", job), ""), http.StatusOK); !p.Job || p.Running == nil || p.Tasks != nil {
		t.Errorf("%+v", p)
	}
	if list := want[[]task.Plan](t, c.do(t, http.MethodGet, "/plans", ""), http.StatusOK); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	wantProblem(t, c.do(t, http.MethodGet, "/plans/7", ""), http.StatusNotFound, "no such plan")
}

// Nothing is made of a file that is no plan, or that names what lies at a server; the problem names line and field.
func TestSubmitPlanRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenSubmit)
	const yaml = "application/yaml"
	step := func(fields string) string { return "steps:\n  one: {" + fields + "}\n" }
	for _, tt := range []struct {
		kind, query, text string
		status            int
		detail, location  string
	}{
		{yaml, "", step("program: p, upload: /etc"), 422, "body:2: steps.one.upload: files of the server are not read", "line 2.steps.one.upload"},
		{yaml, "", step("program: p, source: 'file:/etc/passwd'"), 422, "body:2: steps.one: ", "line 2.steps.one"},
		{yaml, "", step("source: 'command:cat', stdin: 'file:/etc/passwd'"), 422, "files of the server are not read", "line 2.steps.one"},
		{yaml, "", step("source: 'command:seq', input: '3'") + "  two: {source: 'command:cat', stdin: 'file:/etc/passwd', foreach: {lines: one}}\n", 422,
			"files of the server are not read", "line 3.steps.two"},
		{yaml, "", step("source: 'command:seq', queue: nightly"), 422, "no such queue", "line 2.steps.one"},
		{yaml, "", step("source: 'odd:seq', program: p"), 422, "use http://", "line 2.steps.one"},
		{yaml, "", step("color: red, needs: [two]"), 422, ", and 1 more; nothing was opened", "line 2.steps.one"},
		{yaml, "", "", 422, "steps", "line 1"},
		{yaml, "", "steps: " + strings.Repeat("[", 1000), 422, "more than 100 lists and mappings lie in each other", "line 1"},
		{yaml, "?param=of", twoSteps, 422, "name=value", "param"},
		{yaml, "?param=of%3D1&param=of%3D2", twoSteps, 422, "each name once", "param"},
		{yaml, "?param=to%3D1", twoSteps, 422, "unknown parameter to=1", "body"},
		{yaml, "?color=red", twoSteps, 422, "query.color", "query.color"},
		{yaml, "", strings.Repeat("#", mostBody+1), 413, "at most 1048576 bytes", ""},
		{"application/json", "", "{}", 415, "send a plan file as application/yaml", ""},
	} {
		w := c.do(t, http.MethodPost, "/plans"+tt.query, tt.text, "Content-Type", tt.kind)
		wantProblem(t, w, tt.status, tt.detail)
		if got := want[struct{ Errors []struct{ Location string } }](t, w, tt.status).Errors; tt.location != "" && (len(got) == 0 || got[0].Location != tt.location) {
			t.Errorf("%.100s: %+v, want %s", tt.text, got, tt.location)
		}
	}
	for _, err := range c.m.Plans(t.Context()) {
		t.Errorf("a plan was made, %v", err)
	}
}

// What is missing of a plan that could not be made to its end is told, with the ways on.
func TestSubmitPlanHalfMade(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenOperate)
	text := fmt.Sprintf("steps:\n  one: {source: 'command:cat', stdin: 'blob:sha256=%064d'}\n", 7)
	w := c.do(t, http.MethodPost, "/plans", text, "Content-Type", "application/yaml", "Idempotency-Key", "mine")
	wantProblem(t, w, http.StatusNotFound, "plan 1 was not made to its end, and nothing of it runs")
	wantProblem(t, w, http.StatusNotFound, "with Idempotency-Key: mine; to be rid of it: POST /api/v1/plans/1/cancel")
	if p := want[task.Plan](t, c.do(t, http.MethodPost, "/plans/1/cancel", ""), http.StatusOK); p.State != task.PlanCancelled {
		t.Errorf("%+v", p)
	}
}

// A plan is held, goes on, is repaired and cancelled.
func TestChangePlan(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenOperate)
	defer runServer(t, c.sp)()
	made := c.submitPlan(t, "", twoSteps)
	change := func(verb, text string) task.Plan {
		t.Helper()
		return want[task.Plan](t, c.do(t, http.MethodPost, fmt.Sprintf("/plans/%d/%s", made.Plan, verb), text), http.StatusOK)
	}
	if p := change("hold", `{"reason":"input is late"}`); p.State != task.PlanHeld || p.HeldBy != "token a-operate: input is late" {
		t.Errorf("%+v", p)
	}
	if p := change("resume", ""); p.State != task.PlanReady {
		t.Errorf("%+v", p)
	}
	want[struct{}](t, c.do(t, http.MethodPost, "/tasks/cancel", `{"tasks":["1"]}`), http.StatusOK)
	type retried struct {
		Opened map[int64]int64
		DryRun bool `json:"dry_run"`
	}
	for _, text := range []string{`{"dry_run":true}`, ""} {
		got := want[retried](t, c.do(t, http.MethodPost, "/plans/1/retry", text), http.StatusOK)
		if id, is := got.Opened[1]; !is || got.DryRun == (id > 0) || got.DryRun == (text == "") {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if p := change("cancel", `{"reason":"wrong day"}`); p.State != task.PlanCancelled || p.Left != 0 {
		t.Errorf("%+v", p)
	}
	if one, err := c.m.Task(t.Context(), 2); err != nil || !strings.Contains(fmt.Sprint(one.Log), "wrong day") {
		t.Errorf("%+v, %v", one, err)
	}
	for _, verb := range []string{"hold", "resume", "retry"} {
		wantProblem(t, c.do(t, http.MethodPost, "/plans/1/"+verb, ""), http.StatusConflict, "cancelled")
	}
	wantProblem(t, c.do(t, http.MethodPost, "/plans/7/cancel", ""), http.StatusNotFound, "no such plan")
	wantProblem(t, c.do(t, http.MethodPost, "/plans/1/hold", `{"dry_run":true}`), http.StatusUnprocessableEntity, "body.dry_run")
}
