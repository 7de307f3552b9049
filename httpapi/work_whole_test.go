package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// recorded is the report of a round by a tdf-worker: its record, and further members.
func recorded(a *worker.Assigned, more string, record ...string) string {
	fields := map[string]string{}
	for i := 0; i < len(record); i += 2 {
		fields[record[i]] = base64.StdEncoding.EncodeToString([]byte(record[i+1]))
	}
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return `"whole":true,` + endOf(a, `"record":`+string(text)+more)
}

// claimWhole gets a task as a tdf-worker does: all of it is in a form of its own.
func (f *foreign) claimWhole(t *testing.T) worker.Assigned {
	t.Helper()
	got := f.turn(t, `"whole":true,"slots":1`)
	if len(got.Tasks) != 1 || len(got.Tasks[0].Claimed) == 0 || got.Tasks[0].Source != "" {
		t.Fatalf("%+v", got)
	}
	return got.Tasks[0]
}

// A tdf-worker has judged its rounds itself. What it records is in the record as it is, and whether that is a failure the record says.
func TestWorkRecords(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	f := c.worker(t, "w", `{"containment":"pidns","host":"h1"}`)
	id := c.open(t)
	a := f.claimWhole(t)
	report := recorded(&a, `,"lines":[{"at":"2030-01-01T00:00:00Z","text":"one\nline"}],"node":"good","meta":{"k":"v"},"cut":["output"]`,
		"output", "a\x00\xff\n", "error", "", "exit_code", "0", "output_bytes", "9", "user_time", "1.5")
	for _, outcome := range []string{"recorded", "repeated"} {
		if o := f.turn(t, report).Outcomes[0]; o.Outcome != outcome || o.Code != "" {
			t.Errorf("%+v, want %s", o, outcome)
		}
	}
	done := c.task(t, id)
	if r := done.Rounds[0]; done.State != statemachine.Executed || r.Output != "a\x00\xff\n" || r.Error != "" || *r.ExitCode != 0 || r.OutputBytes != 9 {
		t.Errorf("%+v", done)
	}
	said := slices.IndexFunc(done.Log, func(l task.LogEntry) bool { return strings.HasSuffix(l.Text, `one\nline`) })
	if said < 0 || done.Meta["k"] != "v" {
		t.Errorf("log %+v, meta %v", done.Log, done.Meta)
	}
	failing := c.open(t, "max_fails", "0")
	a = f.claimWhole(t)
	if o := f.turn(t, recorded(&a, "", "output", "x", "error", "it broke", "class", "disk", "exit_code", "3")).Outcomes[0]; o.Outcome != "recorded" {
		t.Errorf("%+v", o)
	}
	if r := c.task(t, failing).Rounds[0]; r.Error != "it broke" || r.Class != "disk" {
		t.Errorf("%+v", r)
	}
	back := c.open(t)
	a = f.claimWhole(t)
	if o := f.turn(t, `"whole":true,`+endOf(&a, `"ended":"handed_back"`)).Outcomes[0]; o.Outcome != "recorded" {
		t.Errorf("%+v", o)
	}
	if is := c.task(t, back); is.State != statemachine.Open || is.Releases != 1 {
		t.Errorf("%+v", is)
	}
	if o := f.turn(t, recorded(&a, "", "output", "x", "error", "")).Outcomes[0]; o.Outcome != "refused" || o.Code != "stale" {
		t.Errorf("%+v", o)
	}
}

// Whatever stands in the place of a record, nothing is written but what a worker records of its own round.
func TestWorkRecordsNothingElse(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	f := c.worker(t, "w", `{}`)
	id := c.open(t)
	a := f.claimWhole(t)
	before := c.sp.Task(t, id).Fields
	for _, record := range [][]string{
		{"state", "succeeded"}, {"0:output", "x"}, {"1:output", "x"}, {"worker", "other"}, {"claim", "x"}, {"claimed", "1"}, {"", "x"}, {"output:", "x"},
		{"attr:k", "v"}, {"log", "x"}, {"source", "x"}, {"exit_code", "-1"}, {"exit_code", "x"}, {"user_time", "-x"}, {"retry", "soon"},
		{"class", "treason"}, {"output_sha256", "x"}, {"program_sha256", strings.Repeat("A", 64)}, {"files", "x"}, {"files", strings.Repeat("a", 64)},
		{"whole", "../../x 1 1"}, {"output", strings.Repeat("x", 1<<20+1<<17)}, {"trace", strings.Repeat("x", 1<<20)}, {"status", strings.Repeat("1", 100)},
	} {
		text := fmt.Sprintf(`{"incarnation":%d,%s}`, f.incarnation, recorded(&a, "", record...))
		wantProblem(t, f.ask(t, http.MethodPost, "/turn", text), http.StatusUnprocessableEntity, "record")
	}
	for _, more := range []string{`,"node":"fine"`, `,"cut":["all"]`, `,"meta":{"Bad":"x"}`} {
		text := fmt.Sprintf(`{"incarnation":%d,%s}`, f.incarnation, recorded(&a, more, "output", "x", "error", ""))
		if w := f.ask(t, http.MethodPost, "/turn", text); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", more, w.Code, w.Body)
		}
	}
	for _, turn := range []string{`"whole":false,"incarnation":0`, `"whole":true,"incarnation":0,"slots":1,"request":"r-1"`} {
		wantProblem(t, f.ask(t, http.MethodPost, "/turn", "{"+turn+"}"), http.StatusUnprocessableEntity, "incarnation")
	}
	if after := c.sp.Task(t, id).Fields; fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the task has changed:\n%v\n%v", before, after)
	}
	other := c.worker(t, "other", `{}`)
	if o := other.turn(t, recorded(&a, "", "output", "x", "error", "")).Outcomes[0]; o.Outcome != "refused" || o.Code != "stale" {
		t.Errorf("%+v", o)
	}
}

// What was cancelled meanwhile its worker has to record as it is; what it has reported counts also once its session is over.
func TestWorkRecordsLate(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	f := c.worker(t, "w", `{}`)
	id, kept := c.open(t), c.open(t)
	a, b := f.claimWhole(t), f.claimWhole(t)
	if _, err := c.m.Cancel(t.Context(), []int64{id}, manager.ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	if o := f.turn(t, `"whole":true,`+endOf(&a, `"ended":"handed_back"`)).Outcomes[0]; o.Code != "stop_asked" {
		t.Errorf("%+v", o)
	}
	report := recorded(&a, `,"ended":"cancelled"`, "output", "so far", "error", "cancelled")
	if o := f.turn(t, report).Outcomes[0]; o.Outcome != "recorded" {
		t.Errorf("%+v", o)
	}
	if got := c.task(t, id); got.State != statemachine.Terminated || got.Rounds[0].Output != "so far" {
		t.Errorf("%+v", got)
	}
	f.incarnation = 0 // as after a restart, before there is a session
	if got := f.turn(t, recorded(&b, "", "output", "kept", "error", "")); got.Outcomes[0].Outcome != "recorded" || got.Incarnation != 0 {
		t.Errorf("%+v", got)
	}
	if got := c.task(t, kept); got.Rounds[0].Output != "kept" {
		t.Errorf("%+v", got)
	}
	f.incarnation = 7
	if got := f.turn(t, `"whole":true,"slots":1`); got.Incarnation != 0 || len(got.Tasks) != 0 {
		t.Errorf("a session that is over: %+v", got)
	}
}

// Who wants a name learns who has it, and may take the place of that session alone. Until what it held is reported nothing is given up.
func TestWorkTakesOver(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	f := c.worker(t, "w", `{"identity":"a","host":"h1","node":"n1"}`)
	id := c.open(t)
	a := f.claimWhole(t)
	w := f.ask(t, http.MethodPost, "/session", `{"identity":"b"}`)
	wantProblem(t, w, http.StatusConflict, "take_over")
	var problem struct {
		Errors []struct {
			Location string
			Value    worker.NameHolder
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil || len(problem.Errors) != 1 || problem.Errors[0].Location != "name" {
		t.Fatalf("%v: %s", err, w.Body)
	}
	h := problem.Errors[0].Value
	if h.Incarnation != f.incarnation || h.Identity != "a" || h.Host != "h1" || h.Node != "n1" || h.Lease <= 0 || time.Since(h.Heartbeat) > time.Hour {
		t.Errorf("%+v", h)
	}
	if w := f.ask(t, http.MethodPost, "/session", `{"identity":"b","replaces":99}`); w.Code != http.StatusConflict {
		t.Errorf("in the place of another session: %d %s", w.Code, w.Body)
	}
	replaces := fmt.Sprintf(`{"identity":"b","replaces":%d`, h.Incarnation)
	for range 2 {
		s := f.register(t, replaces+`,"keep":true}`)
		if s.Incarnation != 0 || !slices.Equal(s.Lost, []int64{id}) {
			t.Errorf("%+v", s)
		}
	}
	if got := c.task(t, id); got.State != statemachine.Running {
		t.Errorf("the task is %s", got.State)
	}
	if o := f.turn(t, recorded(&a, "", "output", "x", "error", "")).Outcomes[0]; o.Outcome != "recorded" {
		t.Errorf("%+v", o)
	}
	if s := f.register(t, replaces+`}`); s.Incarnation <= h.Incarnation || len(s.Lost) != 0 {
		t.Errorf("%+v", s)
	}
}

// A worker learns what it has to know of its site, and of rounds that it holds; of others nothing.
func TestWorkAsks(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	needed := c.open(t)
	f := c.worker(t, "w", `{}`)
	if site := want[worker.SiteView](t, f.ask(t, http.MethodGet, "/site", ""), http.StatusOK); site.Namespace != c.sp.Namespace {
		t.Errorf("%+v", site)
	}
	a := f.claimWhole(t)
	if a.Task != needed {
		t.Fatalf("%+v", a)
	}
	ask := func(members string) string {
		ref, err := json.Marshal(a.RoundRef)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(string(ref), "}") + "," + members + "}"
	}
	for members, detail := range map[string]string{
		`"results":[99]`: "needs", `"fields":["source"]`: "field", `"fields":["0:claim"]`: "field", `"keepers":"p@` + strings.Repeat("a", 64) + `"`: "pinned",
		`"first":{"source":"http://h/x"}`: "source", `"busy":1`: "busy", `"results":[]`: "results",
	} {
		wantProblem(t, f.ask(t, http.MethodPost, "/question", ask(members)), http.StatusUnprocessableEntity, detail)
	}
	want[worker.RoundFacts](t, f.ask(t, http.MethodPost, "/question", ask(`"fields":["feeds"]`)), http.StatusOK)
	other := c.worker(t, "other", `{}`)
	wantProblem(t, other.ask(t, http.MethodPost, "/question", ask(`"fields":["feeds"]`)), http.StatusConflict, "does not hold it")
	mine := a.Claim
	a.Claim = "x"
	wantProblem(t, f.ask(t, http.MethodPost, "/question", ask(`"fields":["feeds"]`)), http.StatusConflict, "does not hold it")
	a.Claim = mine
	f.turn(t, recorded(&a, "", "output", "x", "error", ""))
	wantProblem(t, f.ask(t, http.MethodPost, "/question", ask(`"fields":["feeds"]`)), http.StatusConflict, "does not hold it")
}

// A worker puts what its rounds return, under its hash and within the limits, and only while it holds one.
func TestWorkPutsFiles(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	if err := c.sp.Store.PublishBlobs(t.Context(), 10, 15, time.Hour); err != nil {
		t.Fatal(err)
	}
	f := c.worker(t, "w", `{}`)
	const first, second = "0123456789", "9876543210"
	wantProblem(t, f.ask(t, http.MethodPut, "/files/"+hashOf(first), first), http.StatusConflict, "holds no round")
	id := c.open(t)
	a := f.claimWhole(t)
	for range 2 {
		if w := f.ask(t, http.MethodPut, "/files/"+hashOf(first), first); w.Code != http.StatusCreated {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	for _, tt := range []struct {
		path, text string
		status     int
		detail     string
	}{
		{hashOf(second), first + "x", http.StatusRequestEntityTooLarge, "at most 10 bytes"},
		{hashOf(second), "short", http.StatusUnprocessableEntity, hashOf("short")},
		{hashOf(second), second, http.StatusInsufficientStorage, "blob_quota"},
		{"x", first, http.StatusUnprocessableEntity, "path.sha256"},
	} {
		wantProblem(t, f.ask(t, http.MethodPut, "/files/"+tt.path, tt.text), tt.status, tt.detail)
	}
	if o := f.turn(t, recorded(&a, "", "output", "", "error", "", "files", hashOf(first)+" 10 1")).Outcomes[0]; o.Outcome != "recorded" {
		t.Errorf("%+v", o)
	}
	if r := c.task(t, id).Rounds[0]; r.Files.SHA256 != hashOf(first) {
		t.Errorf("%+v", r.Files)
	}
}

// An order or a cancel ends the wait for a call at once; without one it lasts as long as it was asked to.
func TestWorkIsCalled(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	f := c.worker(t, "w", `{}`)
	if got := want[workCall](t, f.ask(t, http.MethodGet, "/call?wait=1", ""), http.StatusOK); got.Called {
		t.Error("a worker is called for nothing")
	}
	wantProblem(t, f.ask(t, http.MethodGet, "/call?wait=61", ""), http.StatusUnprocessableEntity, "wait")
	c.open(t)
	a := f.claimWhole(t)
	for name, order := range map[string]func(){
		"cancel": func() {
			if _, err := c.m.Cancel(t.Context(), []int64{a.Task}, manager.ChangeOptions{}); err != nil {
				t.Fatal(err)
			}
		},
		"order": func() { want[any](t, c.do(t, http.MethodPost, "/workers/w/drain", ""), http.StatusOK) },
	} {
		answer, channel := make(chan workCall, 1), c.sp.Key("call:w")
		go func() {
			var got workCall
			_ = json.Unmarshal(f.ask(t, http.MethodGet, "/call?wait=60", "").Body.Bytes(), &got)
			answer <- got
		}()
		wait.Eventually(t, 30*time.Second, func() bool {
			return c.sp.Raw.PubSubNumSub(t.Context(), channel).Val()[channel] > 0
		}, "%s: nobody listens", name)
		order()
		if got := wait.Receive(t, 30*time.Second, answer, "%s: it waits on", name); !got.Called {
			t.Errorf("%s: the worker is not called", name)
		}
	}
}
