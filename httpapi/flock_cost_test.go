package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/series"
	"github.com/tdf-go/tdf/task"
)

// priced is an interface of Flock whose requests are counted as what Redis is asked.
type priced struct {
	sp      *storetest.Space
	m       *manager.Manager
	handler http.Handler
	token   string
}

func (p *priced) ask(t *testing.T, status int, method, path, body string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.SetBasicAuth("flock", p.token)
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	if w.Code != status {
		t.Fatalf("%s %s: %d, want %d\n%s", method, path, w.Code, status, w.Body)
	}
	return w.Body.String()
}

// cost is how many commands Redis carries out for a request.
func (p *priced) cost(t *testing.T, status int, method, path string) (calls int) {
	t.Helper()
	p.sp.Server.Do(t, "CONFIG", "RESETSTAT")
	p.ask(t, status, method, path, "")
	text, _ := p.sp.Server.Do(t, "INFO", "commandstats").(string)
	for line := range strings.Lines(text) {
		var n int
		name, rest, _ := strings.Cut(line, ":")
		if _, err := fmt.Sscanf(rest, "calls=%d,", &n); err == nil && name != "cmdstat_config|resetstat" {
			calls += n
		}
	}
	return calls
}

// begin begins what is due of the series.
func (p *priced) begin(t *testing.T, open int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- series.NewRunner(p.m, series.Options{Logger: slog.New(slog.DiscardHandler)}).Run(ctx) }()
	wait.Eventually(t, time.Minute, func() bool {
		n, err := p.sp.Raw.ZCard(t.Context(), p.sp.Key("open")).Result()
		return err == nil && n == open
	}, "%d tasks are not open", open)
	cancel()
	if err := wait.Receive(t, time.Minute, done, "the runner does not end"); err != nil {
		t.Fatal(err)
	}
}

// F18: a reserve costs Redis the same, however many tasks are not due.
func TestFlockCost(t *testing.T) {
	t.Parallel()
	sp := storetest.On(t, redistest.Start(t))
	p := &priced{sp: sp, m: manager.New(storetest.At(t, sp.Where, sp.Namespace, nil), "test", manager.Options{})}
	p.handler = New(Options{Manager: p.m, Gateway: gatewayOf(t, sp), Flock: true, Logger: slog.New(slog.DiscardHandler)})
	var err error
	if p.token, _, err = p.m.NewToken(t.Context(), task.TokenSpec{Name: "all", Role: task.TokenOperate}, manager.ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	var fid, wid int64
	scan := func(text, format string, id *int64) {
		if _, err := fmt.Sscanf(text, format, id); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	scan(p.ask(t, http.StatusCreated, http.MethodPost, "/func", `{"name":"crawl","env":"python"}`), `{"fid":%d,`, &fid)
	scan(p.ask(t, http.StatusCreated, http.MethodPost, "/worker", `{"ip":"10.0.0.5","pid":1,"cap":"python"}`), `{"wid":%d}`, &wid)
	path := fmt.Sprintf("/worker/%d/task", wid)
	due := func(n int, eta int64) {
		for i := range n {
			p.ask(t, http.StatusCreated, http.MethodPost, "/task", fmt.Sprintf(`{"fid":%d,"task_key":"%d %d","eta":%d}`, fid, eta, i, eta))
		}
	}
	reserves := func() (first, last, none int) {
		return p.cost(t, http.StatusOK, http.MethodGet, path), p.cost(t, http.StatusOK, http.MethodGet, path), p.cost(t, http.StatusNoContent, http.MethodGet, path)
	}
	due(2, 1)
	p.begin(t, 2)
	reserves() // from now on all scripts are known
	due(2, 2)
	p.begin(t, 2)
	first, last, none := reserves()
	later := time.Now().Add(time.Hour).Unix()
	due(1000, later)
	due(2, 3)
	p.begin(t, 2)
	first2, last2, none2 := reserves()
	t.Logf("%d, %d and %d commands, beside 1,000 tasks that are not due %d, %d and %d", first, last, none, first2, last2, none2)
	if first2 > first+1 || last2 > last+1 || none2 > none+1 { // it holds two tasks more
		t.Errorf("a reserve costs %d, %d and %d commands, %d, %d and %d without other tasks", first2, last2, none2, first, last, none)
	}
}
