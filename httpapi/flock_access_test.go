package httpapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/series"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// Nobody asks without a token that may, none speaks for the worker of another one, and no page of another site asks.
func TestFlockCallers(t *testing.T) {
	t.Parallel()
	o := newOld(t)
	tid := o.schedule(o.function("python"), "k", soon, "")
	wid := o.register("python")
	operator := o.token
	o.becomes(tid, flockDue)
	for _, site := range []string{"cross-site", "same-site"} {
		if w := o.send(http.MethodGet, wid+"/task", "", "Sec-Fetch-Site", site); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `"error"`) {
			t.Errorf("%s: %d %s", site, w.Code, w.Body)
		}
	}
	for _, origin := range []string{"http://evil.example", "null"} {
		if w := o.send(http.MethodPut, wid, "", "Origin", origin); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d %s", origin, w.Code, w.Body)
		}
	}
	for _, header := range [][]string{{"Sec-Fetch-Site", "none"}, {"Origin", "http://example.com", "Sec-Fetch-Site", "same-origin"}} {
		if w := o.send(http.MethodPut, wid, "", header...); w.Code != http.StatusNoContent {
			t.Errorf("%v: %d %s", header, w.Code, w.Body)
		}
	}
	o.becomes(tid, flockDue)
	if w := o.send(http.MethodPut, wid, "", "Authorization", "Bearer "+operator); w.Code != http.StatusNoContent {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, token := range []string{"", operator + "x"} {
		o.token = token
		if w := o.send(http.MethodGet, "/", ""); w.Code != http.StatusUnauthorized || !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Basic ") || !strings.Contains(w.Body.String(), `"error"`) {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
	}
	for _, tt := range []struct {
		role               task.TokenRole
		read, change, work bool
	}{{task.TokenRead, true, false, false}, {task.TokenSubmit, true, false, false}, {task.TokenWork, false, false, true}, {task.TokenAdmin, true, true, true}} {
		o.token = o.tokenOf(t, tt.role)
		for path, may := range map[string]bool{
			"GET /": tt.read, "GET " + taskPath(tid): tt.read, "GET /fun/7": tt.read, "POST /func": tt.change, "POST /task": tt.change,
			"PUT " + taskPath(tid): tt.change, "DELETE /task/7": tt.change, "POST /worker": tt.work, "PUT /worker/7": tt.work,
			"GET /worker/7/task": tt.work, "PUT /worker/7/task/7": tt.work,
		} {
			method, path, _ := strings.Cut(path, " ")
			if w := o.send(method, path, ""); (w.Code != http.StatusForbidden) != may {
				t.Errorf("%s as %s: %d %s", path, tt.role, w.Code, w.Body)
			}
		}
		for method, path := range map[string]string{http.MethodPut: wid, http.MethodGet: wid + "/task"} {
			if w := o.send(method, path, ""); w.Code != http.StatusForbidden {
				t.Errorf("the worker of another token: %d %s", w.Code, w.Body)
			}
		}
	}
	off := &old{t: t, client: o.client}
	off.token, off.handler = operator, serve(t, o.sp, &health{})
	for _, path := range []string{"/", "/func/1", "/task/1"} {
		if w := off.send(http.MethodGet, path, ""); w.Code != http.StatusNotFound || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("off by default: %d %s", w.Code, w.Body)
		}
	}
}

// Who asks too often waits: a token may ask more often here than elsewhere, since many workers share it.
func TestFlockLimits(t *testing.T) {
	t.Parallel()
	sp, now := storetest.New(t), time.Now()
	o := &old{t: t, client: client{sp: sp, m: manager.New(storetest.At(t, sp.Where, sp.Namespace, nil), "test", manager.Options{})}}
	o.handler = serve(t, sp, &health{flock: true, now: func() time.Time { return now }})
	w := &httptest.ResponseRecorder{}
	for range 2*flockPerSecond + 1 {
		w = o.send(http.MethodGet, "/nothing/here", "")
	}
	if w.Code != http.StatusNotFound {
		t.Errorf("another path: %d", w.Code)
	}
	for n := range 2*flockPerSecond + 1 {
		if w = o.send(http.MethodGet, "/task/1", ""); (w.Code == http.StatusTooManyRequests) != (n == 2*flockPerSecond) {
			t.Fatalf("request %d: %d %s", n, w.Code, w.Body)
		}
	}
	if w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "asks more than 2000 times a second") {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
}

// The page shows functions, workers and errors, as text.
func TestFlockPage(t *testing.T) {
	t.Parallel()
	o := newOld(t)
	fid := o.want(http.StatusCreated, http.MethodPost, "/func", `{"name":"<script>crawl","env":"python"}`).FID
	wid := o.register("python")
	o.schedule(fid, "a", soon, "")
	o.schedule(fid, "b", late, "")
	o.schedule(fid, "c", late, "")
	got := o.reserve(wid)
	o.want(http.StatusOK, http.MethodPut, wid+taskPath(got.TID), `{"error":"<b>no route"}`)
	o.becomes(got.TID, flockOver)
	gone := o.schedule(fid, "d", soon, "")
	o.reserve(wid)
	if err := o.sp.Raw.HSet(t.Context(), o.sp.Key("record:flock:"+strconv.FormatInt(o.function("java"), 10)), "value", "{").Err(); err != nil {
		t.Fatal(err)
	}
	w := o.send(http.MethodGet, "/", "")
	page := w.Body.String()
	for _, want := range []string{
		"<td>python</td><td>&lt;script&gt;crawl</td><td>2</td><td>1</td>", "<td>" + strings.TrimPrefix(wid, "/worker/") + "</td><td>python</td><td>10.0.0.5</td><td>4242</td><td>ready</td>",
		"&lt;b&gt;no route",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") || strings.Contains(page, "<script>") || w.Header().Get("Content-Security-Policy") == "" {
		t.Errorf("%d %v %s", w.Code, w.Header(), page)
	}
	o.want(http.StatusOK, http.MethodPut, wid+taskPath(gone), `{}`)
	if w := o.send(http.MethodGet, "/nothing", ""); w.Code != http.StatusNotFound {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A task is reserved when it is due, and not before; a worker that is heard of keeps what it has.
func TestFlockETA(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	start := time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)
	sp.SetClock(t, task.Stamp(start))
	m := manager.New(sp.Site(t, nil), "test", manager.Options{})
	gateway, err := worker.NewGateway(sp.Site(t, nil), 10)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gateway.Close() })
	o := &old{t: t, client: client{sp: sp, m: m, handler: New(Options{Manager: m, Gateway: gateway, Flock: true})}}
	o.token = o.tokenOf(t, task.TokenOperate)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = series.NewRunner(m, series.Options{}).Run(ctx)
	}()
	defer func() {
		cancel()
		<-done
	}()
	eta := strconv.FormatInt(start.Unix()+2, 10) + ".5"
	tid := o.schedule(o.function("python"), "k", eta, "")
	wid := o.register("python")
	for _, after := range []time.Duration{0, time.Second, 2*time.Second + 499*time.Millisecond} {
		sp.StepClock(t, task.Stamp(start.Add(after)))
		if w := o.send(http.MethodGet, wid+"/task", ""); w.Code != http.StatusNoContent || o.becomes(tid, flockScheduled, flockDue).State != flockScheduled {
			t.Errorf("%v later: %d %s", after, w.Code, w.Body)
		}
	}
	sp.StepClock(t, task.Stamp(start.Add(2500*time.Millisecond)))
	if got := o.reserve(wid); string(got.ETA) != eta {
		t.Errorf("%+v", got)
	}
	for beat := range 10 {
		sp.StepClock(t, task.Stamp(start.Add(time.Duration(beat+1)*10*time.Second)))
		if w := o.send(http.MethodPut, wid, ""); w.Code != http.StatusNoContent {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	id := o.series(tid).Live[0]
	if got := o.task(t, id); got.State != statemachine.Running || !slices.Equal(o.series(tid).Live, []int64{id}) {
		t.Errorf("%+v", got)
	}
	o.want(http.StatusOK, http.MethodPut, wid+taskPath(tid), `{}`)
}
