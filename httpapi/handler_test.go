package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/server"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// health is what a process says of itself.
type health struct {
	alive, ready error
	now          func() time.Time
	flock        bool
	disbatch     bool
}

// serve makes the handler of a site in the space.
func serve(t *testing.T, sp *storetest.Space, h *health) http.Handler {
	t.Helper()
	m := manager.New(storetest.At(t, sp.Where, sp.Namespace, nil), "test", manager.Options{})
	return New(Options{
		now: h.now, Flock: h.flock, Disbatch: h.disbatch, Manager: m, Gateway: gatewayOf(t, sp), Alive: func() error { return h.alive }, Ready: func() error { return h.ready }, Logger: slog.New(slog.DiscardHandler),
	})
}

func gatewayOf(t *testing.T, sp *storetest.Space) *worker.Gateway {
	t.Helper()
	gateway, err := worker.NewGateway(storetest.At(t, sp.Where, sp.Namespace, nil), 10)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gateway.Close() })
	return gateway
}

func ask(t *testing.T, h http.Handler, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	return w
}

// wantProblem checks an answer of RFC 9457.
func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int, detail string) {
	t.Helper()
	var got struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%v, %v: %s", err, w.Header(), w.Body)
	}
	if w.Code != status || got.Status != status || got.Title != http.StatusText(status) || got.Type != "about:blank" || !strings.Contains(got.Detail, detail) {
		t.Errorf("%d %+v, want %d and %q", w.Code, got, status, detail)
	}
}

// A process is alive while it works, and ready while Redis answers as well.
func TestHealth(t *testing.T) {
	t.Parallel()
	sp := storetest.On(t, redistest.Start(t))
	t.Cleanup(func() { sp.Server.Restart(t) }) // when nobody asks it any more: its users are gone then
	var h health
	handler := serve(t, sp, &h)
	for _, path := range []string{"/healthz", "/readyz"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			if w := ask(t, handler, method, path); w.Code != http.StatusOK || w.Body.String() != "ok\n" || w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
	}
	h.ready = errors.New("no pass has ended")
	wantProblem(t, ask(t, handler, http.MethodGet, "/readyz"), http.StatusServiceUnavailable, "no pass has ended")
	h = health{alive: errors.New("no pass has ended for 2m")}
	wantProblem(t, ask(t, handler, http.MethodGet, "/healthz"), http.StatusServiceUnavailable, "for 2m")
	h = health{}
	sp.Server.Stop(t)
	wantProblem(t, ask(t, handler, http.MethodGet, "/readyz"), http.StatusServiceUnavailable, "cannot ask Redis")
	if w := ask(t, handler, http.MethodGet, "/healthz"); w.Code != http.StatusOK {
		t.Errorf("without Redis: %d %s", w.Code, w.Body)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	handler := serve(t, storetest.New(t), &health{})
	wantProblem(t, ask(t, handler, http.MethodGet, "/tasks"), http.StatusNotFound, "/tasks is not here; there are /healthz, /readyz, /metrics, and /api/v1")
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		w := ask(t, handler, http.MethodPost, path)
		wantProblem(t, w, http.StatusMethodNotAllowed, "not with POST")
		if allow := w.Header().Get("Allow"); allow != "GET, HEAD" {
			t.Errorf("%s allows %q", path, allow)
		}
	}
}

// metrics are the samples of a scrape, without the namespace: tdf_tasks{state="open"} is 3.
func metrics(t *testing.T, h http.Handler, namespace string) map[string]string {
	t.Helper()
	w := ask(t, h, http.MethodGet, "/metrics")
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	problems, err := promlint.New(strings.NewReader(w.Body.String())).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
	got := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if label := `namespace="` + namespace + `"`; strings.HasPrefix(name, "tdf_") {
			if !strings.Contains(name, label) {
				t.Errorf("no namespace: %s", line)
			}
			name = strings.NewReplacer(label+",", "", ","+label, "", label, "").Replace(name)
			got[strings.TrimSuffix(name, "{")] = value
		}
	}
	for name := range got {
		if fields := strings.Fields(name); len(fields) > 1 {
			t.Errorf("%q", name)
		}
	}
	return named(got)
}

// named closes the braces again.
func named(samples map[string]string) map[string]string {
	all := map[string]string{}
	for name, value := range samples {
		if strings.Contains(name, "{") {
			name += "}"
		}
		all[name] = value
	}
	return all
}

// settle lets a server judge what was executed.
func settle(t *testing.T, sp *storetest.Space) {
	t.Helper()
	stop := runServer(t, sp)
	wait.Eventually(t, time.Minute, func() bool {
		counts, err := sp.Store.Count(t.Context())
		return err == nil && counts[statemachine.Executed] == 0
	}, "nothing is settled")
	stop()
}

// runServer has a server at work until stop is called.
func runServer(t *testing.T, sp *storetest.Space, settings ...string) (stop func()) {
	t.Helper()
	s, err := server.New(storetest.At(t, sp.Where, sp.Namespace, nil, settings...), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := wait.Receive(t, time.Minute, done, "the server does not stop"); err != nil {
			t.Error(err)
		}
	}
}

// A scrape says what the site does; each end of a task is counted, also if it was retried, so that no counter falls.
func TestMetrics(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	handler := serve(t, sp, &health{})
	sp.AddQueue(t, task.QueueSpec{Name: "night", Paused: true})
	sp.Open(t, storetest.Spec(), storetest.Spec(), storetest.Spec(), storetest.Spec(func(d *task.Definition) { storetest.Set(d, "start_after", "4000000000") }))
	sp.Open(t, storetest.Spec(func(d *task.Definition) { storetest.Set(d, "queue", "night") }))
	sp.Register(t, "w1")
	held := sp.Claim(t, "w1", 2)
	sp.Report(t, &held[0], "out", "")
	settle(t, sp)
	want := map[string]string{
		"tdf_redis_up": "1", `tdf_tasks{state="open"}`: "3", `tdf_tasks{state="running"}`: "1", `tdf_tasks{state="succeeded"}`: "1",
		`tdf_tasks{state="archived"}`: "0", `tdf_queue_tasks{queue="default",state="open"}`: "2", `tdf_queue_tasks{queue="default",state="running"}`: "1",
		`tdf_queue_due_tasks{queue="default"}`: "1", `tdf_queue_paused{queue="night"}`: "1", `tdf_queue_paused{queue="default"}`: "0",
		`tdf_tasks_ended_total{outcome="succeeded",queue="default"}`: "1", `tdf_tasks_retried_total{outcome="succeeded",queue="default"}`: "0",
		`tdf_workers{state="ready"}`: "1", `tdf_workers{state="lost"}`: "0", `tdf_metrics_left_out{what="workers"}`: "0",
	}
	got := metrics(t, handler, sp.Namespace)
	check := func() {
		t.Helper()
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s is %q, want %s", name, got[name], value)
			}
		}
	}
	check()
	again := storetest.Spec()
	again.RetryOf = held[0].Task.ID
	sp.Open(t, again)
	got = metrics(t, handler, sp.Namespace)
	want[`tdf_tasks{state="open"}`], want[`tdf_tasks_retried_total{outcome="succeeded",queue="default"}`] = "4", "1"
	want[`tdf_queue_tasks{queue="default",state="open"}`], want[`tdf_queue_due_tasks{queue="default"}`] = "3", "2"
	check()
}

// The head of a queue has an age as long as it could start, and no other.
func TestAgeOfAQueue(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	handler := serve(t, sp, &health{})
	const sample = `tdf_oldest_open_seconds{queue="default"}`
	if got := metrics(t, handler, sp.Namespace)[sample]; got != "0" && got != "" {
		t.Errorf("of an empty queue: %q", got)
	}
	now, err := sp.Store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	since := now.Add(-90 * statemachine.Second).Text()
	sp.Open(t, storetest.Spec(), storetest.Spec(func(d *task.Definition) { storetest.Set(d, "start_after", since) }))
	if got, err := strconv.ParseFloat(metrics(t, handler, sp.Namespace)[sample], 64); err != nil || got < 90 || got > 150 {
		t.Errorf("of a task that could start 90 s ago: %v, %v", got, err)
	}
	sp.Claim(t, "w", 2)
	if got := metrics(t, handler, sp.Namespace)[sample]; got != "0" {
		t.Errorf("once all run: %q", got)
	}
}

// However large a site is, what a scrape gives is bounded.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	queues, all := make([]task.Queue, mostNamed+2), make([]task.Worker, mostNamed+3) // the last worker has stopped
	for i := range queues {
		queues[i].Name, all[i].Name, all[i].State = fmt.Sprint("q", i), fmt.Sprint("w", i), task.WorkerReady
	}
	given, left := map[*prometheus.Desc]int{}, map[string]float64{}
	give := func(d *prometheus.Desc, v float64, labels ...string) {
		if given[d]++; d == leftOut {
			left[labels[0]] = v
		}
	}
	out := make(chan prometheus.Metric, 100*len(queues))
	collectQueues(out, give, queues, time.Now())
	collectWorkers(give, all)
	if given[paused] != mostNamed || given[heartbeat] != mostNamed || left["queues"] != 2 || left["workers"] != 2 {
		t.Errorf("%d queues and %d workers have metrics of their own, left out are %v", given[paused], given[heartbeat], left)
	}
}

// Names that are no text do not keep the other metrics away.
func TestMetricsOfOddNames(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.Register(t, "odd\xff")
	if got := metrics(t, serve(t, sp, &health{}), sp.Namespace)[`tdf_workers{state="ready"}`]; got != "1" {
		t.Errorf("%q workers are ready", got)
	}
}

// While Redis is away a scrape says that, and gives what the process knows.
func TestMetricsWithoutRedis(t *testing.T) {
	t.Parallel()
	sp := storetest.On(t, redistest.Start(t))
	t.Cleanup(func() { sp.Server.Restart(t) })
	handler := serve(t, sp, &health{})
	sp.Server.Stop(t)
	if got := metrics(t, handler, sp.Namespace); len(got) != 1 || got["tdf_redis_up"] != "0" {
		t.Errorf("%v", got)
	}
}
