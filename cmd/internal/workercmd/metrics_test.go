package workercmd

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/worker"
)

// A worker tells Prometheus how its rounds went, under names that the docs explain.
func TestMetrics(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	open(t, sp, "true", "1")
	failing := open(t, sp, "exit 3", "1")
	c := prepare(t, "w", configure(t, sp, "slots=1", "[http]", "worker_listen=127.0.0.1:0")).start(t)
	await(t, sp, failing, statemachine.Executed)
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics`).FindString(c.out.String())
	get := func() string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = got.Body.Close() }()
		text, err := io.ReadAll(got.Body)
		if err != nil || got.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", url, got.Status, err)
		}
		return string(text)
	}
	of := fmt.Sprintf(`namespace=%q,queue="default",worker="w"`, sp.Namespace)
	var text string
	wait.Eventually(t, patience, func() bool { // the answer to the report is on its way
		text = get()
		return strings.Contains(text, `tdf_worker_run_seconds_count{`+of+`} 2`)
	}, "the rounds are not counted")
	contains(t, text, fmt.Sprintf(`tdf_worker_rounds_total{end="failed",namespace=%q,queue="default",worker="w"} 1`, sp.Namespace),
		fmt.Sprintf(`tdf_worker_rounds_total{end="succeeded",namespace=%q,queue="default",worker="w"} 1`, sp.Namespace), "go_goroutines", "process_cpu_seconds_total")
	docs, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "OPERATIONS.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`(?m)^# TYPE (tdf_\S+)`).FindAllStringSubmatch(text, -1) {
		contains(t, string(docs), "`"+name[1]+"`")
	}
}

// What a round counts as follows from its report; queues beyond a thousand have no name.
func TestMetricsOfRounds(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	for _, r := range []worker.Reported{
		{Event: statemachine.Report}, {Event: statemachine.Report, Failed: true, Waited: -1}, {Event: statemachine.StopOverdue, Waited: time.Second},
		{Event: statemachine.Terminate}, {Event: statemachine.HandBack}, {Event: statemachine.Report, Failed: true, Refused: statemachine.ErrStale},
	} {
		r.Queue = "q\xff"
		m.reported(r)
	}
	for i := range mostQueues + 1 {
		m.reported(worker.Reported{Event: statemachine.Report, Queue: fmt.Sprint(i), Waited: -1})
	}
	w := httptest.NewRecorder()
	m.handler("w", "n").ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	text := w.Body.String()
	for _, end := range []string{"succeeded", "failed", "timed_out", "cancelled", "handed_back", "refused"} {
		contains(t, text, fmt.Sprintf("tdf_worker_rounds_total{end=%q,namespace=\"n\",queue=\"q\uFFFD\",worker=\"w\"} 1\n", end))
	}
	contains(t, text, `tdf_worker_rounds_total{end="succeeded",namespace="n",queue="",worker="w"} 2`,
		"tdf_worker_wait_seconds_count{namespace=\"n\",queue=\"q\uFFFD\",worker=\"w\"} 5\n",
		`tdf_worker_wait_seconds_bucket{namespace="n",queue="q`+"\uFFFD"+`",worker="w",le="0.3"} 4`)
	if n := strings.Count(text, "tdf_worker_run_seconds_count{"); n != mostQueues+1 {
		t.Errorf("%d queues", n)
	}
}
