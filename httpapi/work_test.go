package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// foreign is a worker that knows the interface over HTTP alone.
type foreign struct {
	client

	name        string
	incarnation int64
	requests    int
}

// worker is a worker with a token of its own, and a session.
func (c *client) worker(t *testing.T, name, registration string) *foreign {
	t.Helper()
	secret, _, err := c.m.NewToken(t.Context(), task.TokenSpec{Name: name, Role: task.TokenWork}, manager.ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f := &foreign{client: *c, name: name}
	f.token = secret
	f.register(t, registration)
	return f
}

func (f *foreign) register(t *testing.T, registration string) sessionBegun {
	t.Helper()
	s := want[sessionBegun](t, f.ask(t, http.MethodPost, "/session", registration), http.StatusCreated)
	f.incarnation = s.Incarnation
	return s
}

func (f *foreign) ask(t *testing.T, method, path, text string) *httptest.ResponseRecorder {
	t.Helper()
	return f.send(t, method, "/workers/"+f.name+path, text)
}

// turn takes a turn with members of the request, such as "slots":1.
func (f *foreign) turn(t *testing.T, members string) worker.RoundAnswer {
	t.Helper()
	f.requests++
	text := fmt.Sprintf(`{"incarnation":%d,"request":"r-%d"`, f.incarnation, f.requests)
	if members != "" {
		text += "," + members
	}
	return want[worker.RoundAnswer](t, f.ask(t, http.MethodPost, "/turn", text+"}"), http.StatusOK)
}

// claim gets one task.
func (f *foreign) claim(t *testing.T) worker.Assigned {
	t.Helper()
	got := f.turn(t, `"slots":1`)
	if len(got.Tasks) != 1 {
		t.Fatalf("%+v", got)
	}
	return got.Tasks[0]
}

// endOf is the report of a round, with further members such as "exit_code":0.
func endOf(a *worker.Assigned, members string) string {
	ref, err := json.Marshal(a.RoundRef)
	if err != nil {
		panic(err)
	}
	return `"reports":[` + strings.TrimSuffix(string(ref), "}") + "," + members + `}]`
}

// report reports a round, and returns what became of that.
func (f *foreign) report(t *testing.T, a *worker.Assigned, members string) worker.ReportOutcome {
	t.Helper()
	return f.turn(t, endOf(a, members)).Outcomes[0]
}

func (c *client) open(t *testing.T, pairs ...string) int64 {
	t.Helper()
	return c.sp.Open(t, storetest.Define(append([]string{"program", "p", "source", "command:p", "input", "1 2"}, pairs...)...))[0]
}

func (c *client) task(t *testing.T, id int64) *task.Task {
	t.Helper()
	got, err := c.m.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A worker that knows nothing but HTTP gets a task, tells of it, reports it with the next claim, and leaves. What it
// sends twice counts once.
func TestWork(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	id := c.open(t, "meta", `{"tenant":"acme"}`, "variables", `{"LANG":"C"}`, "params", `{"n":1}`, "timeout", "100")
	f := c.worker(t, "py-1", `{"node":"lab","slots":2,"labels":"zone=a","identity":"i1","version":"py 1"}`)
	if again := f.register(t, `{"node":"lab","identity":"i1"}`); again.Incarnation != 1 || again.Lease <= 0 {
		t.Errorf("%+v", again)
	}
	a := f.claim(t)
	f.requests--
	if same := f.claim(t); same.RoundRef != a.RoundRef {
		t.Errorf("%+v, then %+v", a, same)
	}
	if a.Task != id || a.Program != "p" || a.Source != "command:p" || !slices.Equal(a.Argv, []string{"1", "2"}) || a.Meta["tenant"] != "acme" ||
		a.Variables["LANG"] != "C" || a.Variables["TDF_PARAMS"] != `{"n":1}` || a.Queue != "default" || a.Left <= task.Seconds(90*time.Second) || a.Left > task.Seconds(100*time.Second) {
		t.Errorf("%+v", a)
	}
	news := fmt.Sprintf(`{"incarnation":1,"task":%d,"round":0,"claim":%q,"progress":0.5,"text":"half","log":["halfway"],"meta":{"step":"2"}}`, id, a.Claim)
	if w := f.ask(t, http.MethodPost, "/news", news); w.Code != http.StatusNoContent {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	running := c.task(t, id)
	if r := running.Rounds[0]; running.State != statemachine.Running || r.Worker != "py-1" || r.Node != "lab" || running.Meta["step"] != "2" {
		t.Errorf("%+v", running)
	}
	if log := running.Log[len(running.Log)-1].Text; !strings.Contains(log, "halfway") {
		t.Errorf("%q", log)
	}
	if r := running.Rounds[0]; r.Progress.Part == nil || *r.Progress.Part != 0.5 || r.Progress.Text != "half" {
		t.Errorf("%+v", r.Progress)
	}
	if err := c.sp.Store.Follow(t.Context(), id, time.Minute, true); err != nil {
		t.Fatal(err)
	}
	part := fmt.Sprintf(`{"incarnation":1,"task":%d,"round":0,"claim":%q,"output":"aGk=","output_offset":3}`, id, a.Claim)
	if w := f.ask(t, http.MethodPost, "/news", part); w.Code != http.StatusNoContent {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	chunks, _, err := c.sp.Store.Chunks(t.Context(), id, "", time.Second)
	if err != nil || len(chunks) != 1 || chunks[0].Stream != "output" || chunks[0].Offset != 3 || string(chunks[0].Data) != "hi" {
		t.Errorf("%+v, %v", chunks, err)
	}
	blob, err := c.m.PutStdin(t.Context(), strings.NewReader("five lines"))
	if err != nil {
		t.Fatal(err)
	}
	if w := f.ask(t, http.MethodGet, "/blobs/"+strings.TrimPrefix(blob, "blob:sha256="), ""); w.Code != http.StatusOK || w.Body.String() != "five lines" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	second := c.open(t)
	report := endOf(&a, `"exit_code":0,"output":"YQD/Cg==","result":"7","user_time":1.5,"max_memory":1000,"eta":"2030-01-01T00:00:00Z"`)
	got := f.turn(t, report+`,"slots":1`)
	if len(got.Tasks) == 1 && got.Tasks[0].Left != task.Seconds(math.MaxInt64) { // null
		t.Errorf("%+v", got.Tasks[0])
	}
	if got.Outcomes[0] != (worker.ReportOutcome{Task: id, Outcome: "recorded"}) || len(got.Tasks) != 1 || got.Tasks[0].Task != second {
		t.Errorf("%+v", got)
	}
	f.requests--
	if again := f.turn(t, report+`,"slots":1`); again.Outcomes[0].Outcome != "repeated" || len(again.Tasks) != 1 || again.Tasks[0].RoundRef != got.Tasks[0].RoundRef {
		t.Errorf("%+v", again)
	}
	done := c.task(t, id)
	if r := done.Rounds[0]; done.State != statemachine.Executed || r.Output != "a\x00\xff\n" || r.Error != "" || *r.ExitCode != 0 || r.MaxMemory != 1000 {
		t.Errorf("%+v", done)
	}
	wantProblem(t, f.ask(t, http.MethodDelete, "/session?incarnation=1", ""), http.StatusConflict, "hand them back")
	if o := f.report(t, &got.Tasks[0], `"ended":"handed_back","why":"going home"`); o.Outcome != "recorded" {
		t.Errorf("%+v", o)
	}
	if back := c.task(t, second); back.State != statemachine.Open || back.Round != 1 || back.Releases != 1 {
		t.Errorf("%+v", back)
	}
	if w := f.ask(t, http.MethodDelete, "/session?incarnation=1", ""); w.Code != http.StatusNoContent {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, w := range []*httptest.ResponseRecorder{
		f.ask(t, http.MethodPut, "/session", `{"incarnation":1}`), f.ask(t, http.MethodPost, "/turn", `{"incarnation":1,"slots":1,"request":"x-1"}`),
	} {
		wantProblem(t, w, http.StatusGone, "lease")
	}
}

// Whether a round is a failure follows from what its worker has seen, as the task says.
func TestWorkIsJudged(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	f := c.worker(t, "w", `{}`)
	for _, tt := range []struct{ task, report, failure, class string }{
		{"", `"exit_code":0,"output":"aGk="`, "", ""},
		{"", `"exit_code":3,"output":"","error":""`, "exit status 3", "program"},
		{"", `"exit_code":0,"error":"b2g="`, "oh", "program"},
		{"", `"signal":9`, "killed by signal killed", "program"},
		{"", `"why":"no such program","class":"fetch"`, "no such program", "fetch"},
		{"exit", `"exit_code":0,"error":"b2g="`, "", ""},
		{"exit", `"exit_code":1,"error":"b2g="`, "oh", "program"},
		{"stderr", `"exit_code":1`, "", ""},
	} {
		id := c.open(t, slices.DeleteFunc([]string{"fail_on", tt.task}, func(string) bool { return tt.task == "" })...)
		a := f.claim(t)
		if o := f.report(t, &a, tt.report); o.Outcome != "recorded" {
			t.Errorf("%+v", o)
		}
		r := c.task(t, id).Rounds[0]
		if r.Error != tt.failure && r.Error != tt.failure+"\n" || string(r.Class) != tt.class {
			t.Errorf("%q, %q: error %q, class %q", tt.task, tt.report, r.Error, r.Class)
		}
	}
	id := c.open(t, "on_cut", "fail")
	a := f.claim(t)
	f.report(t, &a, `"exit_code":0,"output":"aGk=","output_bytes":100`)
	if r := c.task(t, id).Rounds[0]; !strings.Contains(r.Error, "on_cut is fail") || r.OutputBytes != 100 {
		t.Errorf("%+v", r)
	}
	id = c.open(t, "return", `["*.txt"]`)
	a = f.claim(t)
	f.report(t, &a, `"exit_code":0,"program_sha256":"`+strings.Repeat("a", 64)+`"`)
	if r := c.task(t, id).Rounds[0]; !strings.Contains(r.Error, "a worker over HTTP returns none") || r.ProgramSHA256 != strings.Repeat("a", 64) {
		t.Errorf("%+v", r)
	}
	c.open(t)
	a = f.claim(t)
	for report, detail := range map[string]string{
		`"output":"aGk="`: "give it, signal, or why", `"exit_code":0,"signal":9`: "leave out one", `"exit_code":0,"output":"aGk=","output_bytes":1`: "output_bytes",
		`"exit_code":0,"meta":{"Bad":"x"}`: "meta", `"exit_code":0,"output":"?"`: "output", `"ended":"lost"`: "ended",
	} {
		text := fmt.Sprintf(`{"incarnation":%d,%s}`, f.incarnation, endOf(&a, report))
		wantProblem(t, f.ask(t, http.MethodPost, "/turn", text), http.StatusUnprocessableEntity, detail)
	}
}

// A worker is told to end what was cancelled and what is overdue, and its reports do what those of other workers do.
func TestWorkIsStopped(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	if err := c.sp.Store.PublishLease(t.Context(), 3*statemachine.Second); err != nil {
		t.Fatal(err)
	}
	f := c.worker(t, "w", `{"slots":3}`)
	stopped, overdue := c.open(t), c.open(t, "timeout", "50", "max_timeouts", "1", "retry_delay", "0")
	a, b := f.claim(t), f.claim(t)
	if o := f.report(t, &a, `"ended":"cancelled"`); o.Outcome != "refused" || !strings.Contains(o.Why, "nobody has cancelled") {
		t.Errorf("%+v", o)
	}
	if _, err := c.m.Cancel(t.Context(), []int64{stopped}, manager.ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	answer := f.waiting(t.Context(), t, 60)
	told := wait.Receive(t, 30*time.Second, answer, "it waits on")
	if !slices.Equal(told.Stops, []worker.Stop{{Task: stopped, Ended: worker.EndedCancelled}}) {
		t.Errorf("%+v", told)
	}
	answer = f.waiting(t.Context(), t, 60) // it has been told, and waits for work
	third := c.open(t)
	if got := wait.Receive(t, 30*time.Second, answer, "no task"); len(got.Tasks) != 1 || got.Tasks[0].Task != third {
		t.Errorf("%+v", got)
	}
	beat := want[worker.Standing](t, f.ask(t, http.MethodPut, "/session", fmt.Sprintf(`{"incarnation":%d,"busy":2}`, f.incarnation)), http.StatusOK)
	if !slices.Equal(beat.Stops, []worker.Stop{{Task: stopped, Ended: worker.EndedCancelled}}) {
		t.Errorf("%+v", beat)
	}
	if o := f.report(t, &a, `"ended":"cancelled","output":"aGk="`); o.Outcome != "recorded" {
		t.Errorf("%+v", o)
	}
	if got := c.task(t, stopped); got.State != statemachine.Terminated || got.Rounds[0].Output != "hi" {
		t.Errorf("%+v", got)
	}
	if err := c.sp.Store.TellOverdue(t.Context(), c.sp.Task(t, overdue)); err != nil {
		t.Fatal(err)
	}
	beat = want[worker.Standing](t, f.ask(t, http.MethodPut, "/session", fmt.Sprintf(`{"incarnation":%d,"busy":2}`, f.incarnation)), http.StatusOK)
	if !slices.Equal(beat.Stops, []worker.Stop{{Task: overdue, Ended: worker.EndedOverdue}}) {
		t.Errorf("%+v", beat)
	}
	if o := f.report(t, &b, `"ended":"timed_out"`); o.Outcome != "recorded" {
		t.Errorf("%+v", o)
	}
	if o := f.report(t, &b, `"ended":"timed_out"`); o.Outcome != "repeated" {
		t.Errorf("%+v", o)
	}
	if got := c.task(t, overdue); got.State != statemachine.Open || got.Round != 1 || got.Timeouts != 1 {
		t.Errorf("%+v", got)
	}
	again := f.claim(t)
	if _, err := c.m.Cancel(t.Context(), []int64{overdue}, manager.ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	if o := f.report(t, &again, `"ended":"handed_back"`); o.Outcome != "recorded" { // it crosses the order to stop
		t.Errorf("%+v", o)
	}
	if got := c.task(t, overdue); got.State != statemachine.Terminated {
		t.Errorf("%+v", got)
	}
}

// What a worker has not claimed it cannot report, and what it held in an earlier session is over.
func TestWorkOfOthers(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	id := c.open(t)
	f, other := c.worker(t, "w", `{"identity":"a"}`), c.worker(t, "x", `{}`)
	a := f.claim(t)
	forged := a
	for _, claim := range []string{"x", a.Claim + "x"} {
		forged.Claim = claim
		if o := f.report(t, &forged, `"exit_code":0`); o.Outcome != "refused" {
			t.Errorf("%+v", o)
		}
	}
	for _, end := range []string{`"exit_code":0`, `"ended":"handed_back"`, `"ended":"timed_out"`} {
		if o := other.report(t, &a, end); o.Outcome != "refused" || !strings.Contains(o.Why, "did not claim it") {
			t.Errorf("%+v", o)
		}
	}
	none := a
	none.Task = 99
	if o := f.report(t, &none, `"exit_code":0`); o.Outcome != "refused" {
		t.Errorf("%+v", o)
	}
	wantProblem(t, other.ask(t, http.MethodPost, "/news", fmt.Sprintf(`{"incarnation":1,"task":%d,"round":0,"claim":%q,"log":["x"]}`, id, a.Claim)),
		http.StatusConflict, "did not claim it")
	wantProblem(t, other.send(t, http.MethodPost, "/workers/w/turn", `{"incarnation":1}`), http.StatusForbidden, "token x speaks for worker x")
	wantProblem(t, other.send(t, http.MethodGet, "/tasks", ""), http.StatusForbidden, "role work")
	wantProblem(t, f.ask(t, http.MethodPost, "/session", `{"identity":"b"}`), http.StatusConflict, "take_over")
	for text, detail := range map[string]string{
		`{"labels":"zone"}`: "labels", `{"resources":"gpu=some"}`: "resources", `{"maxthreads":"some"}`: "maxthreads", `{"slots":0}`: "slots", `{"node":"a/b"}`: "node",
	} {
		wantProblem(t, f.ask(t, http.MethodPost, "/session", text), http.StatusUnprocessableEntity, detail)
	}
	if s := f.register(t, `{"identity":"b","take_over":true}`); s.Incarnation != 2 || !slices.Equal(s.Lost, []int64{id}) {
		t.Errorf("%+v", s)
	}
	if o := f.report(t, &a, `"exit_code":0`); o.Outcome != "refused" {
		t.Errorf("%+v", o)
	}
	if got := c.task(t, id); got.State != statemachine.Open || got.Losses != 1 || got.Rounds[0].Output != "" {
		t.Errorf("%+v", got)
	}
}

// Whatever a worker sends, nothing fails, and what another one runs goes on.
func TestWorkMalformed(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	id := c.open(t)
	f, other := c.worker(t, "w", `{}`), c.worker(t, "x", `{}`)
	a := other.claim(t)
	before := c.sp.Task(t, id)
	odd := []string{
		"0", "1", "-1", "99999999999999999999", `""`, `"x"`, `"\u0000"`, "{}", "[]", "null", "true", "1e400", "0.5", `"a=b"`, `[{}]`, `{"a":"b"}`,
		`"` + strings.Repeat("9", 300) + `"`, `"!"`, strconv.FormatInt(id, 10), strconv.Quote(a.Claim), `"aGk="`, `"cancelled"`, `"handed_back"`,
		`"2030-01-01T00:00:00Z"`, `"` + string([]byte{0xff}) + `"`,
	}
	members := []string{
		"incarnation", "request", "slots", "busy", "task", "round", "claim", "ended", "exit_code", "signal", "output", "output_bytes", "result",
		"why", "class", "retry_after", "eta", "max_memory", "meta", "progress", "text", "log", "error_offset", "node", "labels", "resources",
		"classes", "maxthreads", "identity", "take_over", "colour",
	}
	rapid.Check(t, func(rt *rapid.T) {
		object := func(name string) string {
			parts := []string{fmt.Sprintf(`"incarnation":%d,"task":%d,"round":0,"claim":%q`, f.incarnation, id, a.Claim)}
			for range rapid.IntRange(0, 5).Draw(rt, name) {
				parts = append(parts, strconv.Quote(rapid.SampledFrom(members).Draw(rt, "member"))+":"+rapid.SampledFrom(odd).Draw(rt, "value"))
			}
			if rapid.Bool().Draw(rt, "without") {
				parts = parts[1:]
			}
			return "{" + strings.Join(parts, ",") + "}"
		}
		way := rapid.SampledFrom([][2]string{
			{http.MethodPost, "/session"}, {http.MethodPut, "/session"}, {http.MethodPost, "/turn"}, {http.MethodPost, "/news"},
		}).Draw(rt, "way")
		text := object("members")
		if way[1] == "/turn" && rapid.Bool().Draw(rt, "reports") {
			text = fmt.Sprintf(`{"incarnation":%d,"reports":[%s,%s]}`, f.incarnation, object("first"), object("second"))
		}
		w := f.ask(t, way[0], way[1], text)
		if w.Code >= http.StatusInternalServerError {
			rt.Fatalf("%s %s: %d %s", way, text, w.Code, w.Body)
		}
	})
	if after := c.sp.Task(t, id); !maps.Equal(before.Fields, after.Fields) {
		t.Errorf("%+v\n%+v", before, after)
	}
}

// waiting begins a turn that waits, and returns what answers it.
func (f *foreign) waiting(ctx context.Context, t *testing.T, seconds int) <-chan worker.RoundAnswer {
	t.Helper()
	f.requests++
	text := fmt.Sprintf(`{"incarnation":%d,"request":"r-%d","slots":1,"wait":%d}`, f.incarnation, f.requests, seconds)
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, root+"/workers/"+f.name+"/turn", strings.NewReader(text))
	r.Header.Set("Authorization", "Bearer "+f.token)
	r.Header.Set("Content-Type", "application/json")
	answer := make(chan worker.RoundAnswer, 1)
	go func() {
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r)
		var a worker.RoundAnswer
		_ = json.Unmarshal(w.Body.Bytes(), &a)
		answer <- a
	}()
	return answer
}

// A turn that waits is answered when a task comes, an operator wants something, or its time is over; meanwhile its
// session lives. One that nobody waits for any more takes no task.
func TestWorkWaits(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	if err := c.sp.Store.PublishLease(t.Context(), statemachine.Second); err != nil {
		t.Fatal(err)
	}
	f := c.worker(t, "w", `{}`)
	answer := f.waiting(t.Context(), t, 60)
	beats := func() time.Time {
		w, err := c.m.Worker(t.Context(), "w")
		if err != nil {
			t.Fatal(err)
		}
		return w.Heartbeat
	}
	first := beats()
	wait.Eventually(t, 20*time.Second, func() bool { return beats().Sub(first) > 1500*time.Millisecond }, "the session did not stay alive")
	id := c.open(t)
	got := wait.Receive(t, 20*time.Second, answer, "no task")
	if len(got.Tasks) != 1 || got.Tasks[0].Task != id {
		t.Fatalf("%+v", got)
	}
	f.report(t, &got.Tasks[0], `"exit_code":0`)
	if none := wait.Receive(t, 20*time.Second, f.waiting(t.Context(), t, 1), "no end"); none.Incarnation != 1 || len(none.Tasks) != 0 {
		t.Errorf("%+v", none)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	answer = f.waiting(ctx, t, 60)
	hangUp()
	wait.Receive(t, 20*time.Second, answer, "no end")
	id = c.open(t)
	if got := c.task(t, id); got.State != statemachine.Open {
		t.Errorf("%+v", got)
	}
	if a := f.claim(t); a.Task != id {
		t.Errorf("%+v", a)
	}
}

// A worker that waits hears at once of a task of a kind that was never there, and of what an operator changes.
func TestWorkOfANewKind(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	if err := c.sp.Store.PublishLease(t.Context(), 600*statemachine.Second); err != nil { // no heartbeat tells it
		t.Fatal(err)
	}
	f := c.worker(t, "w", `{"classes":"encode"}`)
	waits := make(chan struct{}, 1<<16)
	c.sp.Server.Monitor(t, func(words []string) {
		if strings.EqualFold(words[0], "blpop") && strings.HasPrefix(words[1], c.sp.Namespace+":") {
			waits <- struct{}{}
		}
	})
	c.sp.AddQueue(t, task.QueueSpec{Name: "night", Paused: true})
	held := c.open(t, "queue", "night")
	for _, begin := range []func() int64{
		func() int64 { return c.open(t, "class", "encode") },
		func() int64 {
			if _, err := c.sp.Store.SetQueue(t.Context(), "night", func(q *task.QueueSpec) error { return q.Set("paused", "0") }); err != nil {
				t.Fatal(err)
			}
			return held
		},
	} {
		answer := f.waiting(t.Context(), t, 60)
		for waits := waits; waits != nil; {
			select {
			case <-waits:
				waits = nil
			case got := <-answer: // what was told of the rules meanwhile ends a turn
				if len(got.Tasks) > 0 {
					t.Fatalf("%+v", got)
				}
				answer = f.waiting(t.Context(), t, 60)
			case <-time.After(20 * time.Second):
				t.Fatal("it does not wait")
			}
		}
		id := begin()
		got := wait.Receive(t, 20*time.Second, answer, "no answer")
		for len(got.Tasks) == 0 {
			got = wait.Receive(t, 20*time.Second, f.waiting(t.Context(), t, 60), "no answer")
		}
		if got.Tasks[0].Task != id {
			t.Errorf("%+v", got)
		}
		f.report(t, &got.Tasks[0], `"exit_code":0`)
		for len(waits) > 0 {
			<-waits
		}
	}
}

// There is room for so many that wait.
func TestWorkersThatWait(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	f := c.worker(t, "w", `{}`)
	a := newAPI(&Options{Manager: c.m, Gateway: gatewayOf(t, c.sp), Logger: slog.New(slog.DiscardHandler)})
	a.waiting = make(room, 1)
	f.handler = a
	answer := f.waiting(t.Context(), t, 60)
	wait.Eventually(t, time.Minute, func() bool { return len(a.waiting) == 1 }, "nobody waits")
	text := fmt.Sprintf(`{"incarnation":%d,"request":"other-1","slots":1,"wait":60}`, f.incarnation)
	wantProblem(t, f.ask(t, http.MethodPost, "/turn", text), http.StatusServiceUnavailable, "1 turns that wait are open")
	c.open(t)
	if got := wait.Receive(t, time.Minute, answer, "no task"); len(got.Tasks) != 1 {
		t.Errorf("%+v", got)
	}
}

// A worker that drains gets nothing until it is undrained, and one that is to stop is told so.
func TestWorkIsOrdered(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	if err := c.sp.Store.PublishLease(t.Context(), 3*statemachine.Second); err != nil {
		t.Fatal(err)
	}
	f := c.worker(t, "w", `{}`)
	order := func(o task.WorkerCommand) {
		if _, err := c.m.CommandWorker(t.Context(), "w", o); err != nil {
			t.Fatal(err)
		}
		want[worker.Standing](t, f.ask(t, http.MethodPut, "/session", fmt.Sprintf(`{"incarnation":%d}`, f.incarnation)), http.StatusOK)
	}
	id := c.open(t)
	order(task.CommandDrain)
	if got := f.turn(t, `"slots":1`); len(got.Tasks) != 0 || got.Order != task.CommandDrain {
		t.Errorf("%+v", got)
	}
	if w, err := c.m.Worker(t.Context(), "w"); err != nil || w.State != task.WorkerDrained {
		t.Errorf("%+v, %v", w, err)
	}
	answer := f.waiting(t.Context(), t, 60)
	if _, err := c.m.CommandWorker(t.Context(), "w", task.NoCommand); err != nil {
		t.Fatal(err)
	}
	got := wait.Receive(t, 20*time.Second, answer, "it is not undrained")
	if len(got.Tasks) != 1 || got.Tasks[0].Task != id {
		t.Errorf("%+v", got)
	}
	answer = f.waiting(t.Context(), t, 60)
	if _, err := c.m.CommandWorker(t.Context(), "w", task.CommandStop); err != nil {
		t.Fatal(err)
	}
	if got := wait.Receive(t, 30*time.Second, answer, "it is not told to stop"); got.Order != task.CommandStop || len(got.Tasks) != 0 {
		t.Errorf("%+v", got)
	}
	last := c.open(t)
	answer = f.waiting(t.Context(), t, 60) // it has been told, and gets nothing
	wait.Never(t, 2*time.Second, func() bool { return len(answer) > 0 }, "it is told again, without a wait")
	if _, err := c.m.CommandWorker(t.Context(), "w", task.NoCommand); err != nil {
		t.Fatal(err)
	}
	if got := wait.Receive(t, 30*time.Second, answer, "no task"); len(got.Tasks) != 1 || got.Tasks[0].Task != last {
		t.Errorf("%+v", got)
	}
}

// The results of other tasks are arguments; where they cannot be, the round ends without its worker.
func TestWorkWithResults(t *testing.T) {
	t.Parallel()
	c := newClient(t, task.TokenAdmin)
	serving, err := server.New(storetest.At(t, c.sp.Where, c.sp.Namespace, nil), server.Options{Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serving.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	f := c.worker(t, "w", `{"labels":"commands=on"}`)
	plan := "steps:\n  a: {source: 'command:a', max_fails: 0}\n  b: {source: 'command:b', argv: [x], needs: [a]}\n"
	next := func() worker.Assigned {
		t.Helper()
		for range 10 { // the first task of a kind ends a turn without it
			if got := wait.Receive(t, 30*time.Second, f.waiting(t.Context(), t, 25), "no answer"); len(got.Tasks) == 1 {
				return got.Tasks[0]
			}
		}
		t.Fatal("no task")
		return worker.Assigned{}
	}
	want[json.RawMessage](t, c.do(t, http.MethodPost, "/plans", plan, "Content-Type", planFile), http.StatusCreated)
	cut := next()
	f.report(t, &cut, `"exit_code":0,"output":"bm9pc2U=","output_bytes":100`)
	if r := c.task(t, cut.Task).Rounds[0]; !strings.Contains(r.Error, "so it is not a result for the tasks that need it") {
		t.Errorf("%+v", r)
	}
	for _, tt := range []struct{ result, argument string }{{"seven words", "seven words"}, {"a\\u0000b", ""}} {
		want[json.RawMessage](t, c.do(t, http.MethodPost, "/plans", plan, "Content-Type", planFile), http.StatusCreated)
		a := next()
		f.report(t, &a, `"exit_code":0,"output":"bm9pc2U=","result":"`+tt.result+`"`)
		if tt.argument != "" {
			b := next()
			if !slices.Equal(b.Argv, []string{"x", tt.argument}) || len(b.Results) != 1 || b.Results[0].Task != a.Task {
				t.Errorf("%+v", b)
			}
			f.report(t, &b, `"exit_code":0`)
			continue
		}
		wait.Eventually(t, time.Minute, func() bool {
			if got := wait.Receive(t, 20*time.Second, f.waiting(t.Context(), t, 1), "no answer"); len(got.Tasks) != 0 {
				t.Errorf("%+v", got)
			}
			b := c.task(t, a.Task+1)
			return len(b.Rounds) > 0 && strings.Contains(b.Rounds[0].Error, "cannot be an argument: it contains a NUL byte")
		}, "task %d has not failed", a.Task+1)
	}
}
