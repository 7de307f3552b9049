package chaos

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	tokens "github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// foreigners are how many workers there are that reach the site only over HTTP.
const foreigners = 6

// foreignName begins their names.
const foreignName = "http-"

// commandFile is what tasks run that such a worker may take: it tells the program what a worker does not pass on.
const commandFile = `#!/bin/sh
export CHAOS_LEDGER=%q TDF_NAMESPACE=%q
exec %q "$@"
`

// addForeigners starts examples/worker/worker.py, and tdf-worker with --url, behind a bad proxy.
func (tr *trial) addForeigners(t *testing.T, f *crew, tdfWorker string) {
	t.Helper()
	script, err := filepath.Abs("../../examples/worker/worker.py")
	if err != nil {
		t.Fatal(err)
	}
	m := tokens.New(storetest.At(t, tr.Where, tr.Namespace, nil), "tokens", tokens.Options{})
	for i := range foreigners {
		name := fmt.Sprint(foreignName, i+1)
		token, _, err := m.NewToken(t.Context(), task.TokenSpec{Name: name, Role: task.TokenWork}, tokens.ChangeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		command := []string{"python3", script, tr.proxy.url, name}
		if i%3 == 0 {
			command = []string{tdfWorker, name, "../chaos.cfg", "--url", tr.proxy.url}
		}
		home := homeOf(filepath.Join(tr.dir, name))
		f.add(t, foreign, name, tr.dir, append([]string{"env", "TDF_TOKEN=" + token, home}, command...)...)
	}
	tr.Server.Do(t, "BGREWRITEAOF") // a file without its end still has the tokens
}

// homeOf is what tells the programs of a worker from those of others.
func homeOf(dir string) string { return "HOME=" + dir }

// killAll kills what a worker has left behind that contains nothing, as a service manager or the runtime of its container does.
func (m *member) killAll() {
	if m.role != foreign {
		return
	}
	for {
		left := hosttest.ProcessesWith(homeOf(m.dir))
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	}
}

// proxy stands between workers over HTTP and servers. Each request goes to one of them, and some meet a fault.
type proxy struct {
	url     string
	servers []string
	client  http.RoundTripper
	copies  sync.WaitGroup

	mu     sync.Mutex
	rnd    *rand.Rand
	kind   bool // does no harm any more
	deck   deck
	faults map[class]int
	asked  int
	// outcomes are those of reports, in the answers of servers.
	outcomes map[string]int
}

// proxyFaults are what it does: each to one request in sixteen, and to one in five that report something.
var proxyFaults = []class{requestCut, answerCut, requestDelay, requestTwice}

func newProxy(t *testing.T, seed uint64, servers int) *proxy {
	t.Helper()
	p := &proxy{
		rnd: rand.New(rand.NewPCG(seed, 1)), faults: map[class]int{}, outcomes: map[string]int{},
		client: &http.Transport{DisableKeepAlives: true},
	}
	p.deck = deck{rnd: p.rnd}
	for _, fault := range proxyFaults {
		p.deck.cards = append(p.deck.cards, card{class: fault})
	}
	for range servers {
		p.servers = append(p.servers, fmt.Sprint("127.0.0.1:", hosttest.Port(t)))
	}
	s := httptest.NewServer(p)
	p.url = s.URL
	t.Cleanup(func() {
		s.Close()
		p.copies.Wait()
	})
	return p
}

// fate is what comes to one request: a fault, if any, where it goes, and what is late by how much.
type fate struct {
	fault         class
	server, other string
	late, later   time.Duration
	part          float64 // of an answer that is cut
}

func (p *proxy) draw(body []byte) fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	some := func() string { return p.servers[p.rnd.IntN(len(p.servers))] }
	at := func() time.Duration { return time.Duration(p.rnd.Int64N(int64(lease))) }
	f := fate{server: some(), other: some(), late: at(), later: at(), part: max(0, p.rnd.Float64()*2-1)}
	oneIn := 16
	if bytes.Contains(body, []byte(`"claim"`)) {
		oneIn = 5
	}
	if p.rnd.IntN(oneIn) < len(proxyFaults) && !p.kind {
		f.fault = p.deck.draw().class
		p.faults[f.fault]++
	}
	return f
}

// ServeHTTP forwards a request, as its fate is.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	f := p.draw(body)
	if err != nil || f.fault == requestCut {
		panic(http.ErrAbortHandler)
	}
	if f.fault == requestDelay {
		timing.Pause(r.Context(), f.late)
	}
	if f.fault == requestTwice {
		p.again(r, f, body)
	}
	status, header, text, err := p.send(r.Context(), r, f.server, body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if f.fault == requestDelay {
		timing.Pause(r.Context(), f.later)
	}
	maps.Copy(w.Header(), header)
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	if f.fault != answerCut {
		w.WriteHeader(status)
		_, _ = w.Write(text)
		return
	}
	if n := int(float64(len(text)) * f.part); n > 0 {
		w.WriteHeader(status)
		_, _ = w.Write(text[:n])
		_ = http.NewResponseController(w).Flush()
	}
	panic(http.ErrAbortHandler)
}

// again sends a request a second time, to any server, soon or when its worker is much further. Nobody hears the answer.
func (p *proxy) again(r *http.Request, f fate, body []byte) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 2*longest)
	r = r.Clone(ctx)
	p.copies.Go(func() {
		defer cancel()
		timing.Pause(ctx, time.Duration(float64(f.late)*f.late.Seconds())) // often soon
		_, _, _, _ = p.send(ctx, r, f.other, body)
	})
}

// send asks one server.
func (p *proxy) send(ctx context.Context, r *http.Request, server string, body []byte) (status int, header http.Header, text []byte, err error) {
	to := r.Clone(ctx)
	to.URL.Scheme, to.URL.Host, to.Host, to.RequestURI = "http", server, server, ""
	to.Body, to.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer, err := p.client.RoundTrip(to)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err = io.ReadAll(answer.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, said := range outcome.FindAllSubmatch(text, -1) {
		p.outcomes[string(said[1])]++
	}
	return answer.StatusCode, answer.Header, text, err
}

var outcome = regexp.MustCompile(`"outcome": "([a-z]+)"`)

// calm ends the faults.
func (p *proxy) calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kind = true
}

// struck are the faults so far.
func (p *proxy) struck() map[class]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.faults)
}

// overHTTP is what workers over HTTP have done.
type overHTTP struct {
	Requests int            `json:"requests"`
	Outcomes map[string]int `json:"outcomes"` // of reports, as often as servers have said so
	Reported int            `json:"reported"` // rounds whose end counts
	Restarts int            `json:"restarts"`
}

// checkForeigners finds out whether workers over HTTP have done something, and how they have ended: while their last session lasts they
// are refused, and start again.
func (tr *trial) checkForeigners(t *testing.T, events []task.Event) {
	t.Helper()
	r, p := tr.report, tr.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	r.OverHTTP = overHTTP{Requests: p.asked, Outcomes: p.outcomes, Restarts: r.OverHTTP.Restarts}
	for _, e := range events {
		if e.Event == statemachine.Report && strings.HasPrefix(e.By, foreignName) {
			r.OverHTTP.Reported++
		}
	}
	if tr.duration >= enough && r.OverHTTP.Reported < 10 {
		r.violate(spared, "workers over HTTP have done too little: %+v", r.OverHTTP)
	}
	log, err := os.ReadFile(filepath.Join(tr.dir, "fleet.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range foreignEnd.FindAll(log, -1) {
		r.violate(ended, "%s", line)
	}
}

// foreignEnd is what worker.py writes when it ends by itself, but for 409.
var foreignEnd = regexp.MustCompile(`(?m)^(HTTP Error ([0-35-9]|4[1-9]|40[0-8]).*|Traceback .*)$`)
