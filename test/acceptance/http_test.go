package acceptance

import (
	"crypto/tls"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

var httpURL = regexp.MustCompile(`answering over HTTP.*?"url":"([^"]+)"|"url":"([^"]+)"[^\n]*answering over HTTP`)

// httpServer starts a server that answers over HTTP, and returns where.
func (w *world) httpServer(t *testing.T, set ...string) (d *daemon, url string) {
	t.Helper()
	args := []string{"server", w.cfg}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	d = w.launch(t, "server", "tdf-server", args...)
	d.Says(t, "answering over HTTP")
	found := httpURL.FindStringSubmatch(d.Log.String())
	if found == nil {
		t.Fatalf("the log does not say where: %s", d.Log)
	}
	return d, found[1] + found[2]
}

// status is the answer to a request, 0 if nobody answers.
func status(t *testing.T, url, host string) int {
	t.Helper()
	return statusBy(t, http.DefaultClient, url, host)
}

func statusBy(t *testing.T, client *http.Client, url, host string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close, req.Host = true, host
	reply, err := client.Do(req)
	if err != nil {
		return 0
	}
	_ = reply.Body.Close()
	return reply.StatusCode
}

// A server says whether it is alive and ready, and gives metrics. deploy/ and the docs name metrics that exist.
func TestHTTP(t *testing.T) {
	t.Parallel()
	w := worldOn(t, storetest.On(t, redistest.Start(t)), "slots=1")
	w.server(t).Says(t, "initializing")
	server, url := w.httpServer(t, "http.listen=127.0.0.1:0")
	w.worker(t, "w")
	spec := w.script(t, "p", "exit 7")
	w.await(t, w.open(t, spec)[0], sm.Failed)
	wait.Eventually(t, patience, func() bool { return status(t, url+"/readyz", "") == http.StatusOK }, "it is not ready: %s", server.Log)
	if code := status(t, url+"/healthz", ""); code != http.StatusOK {
		t.Errorf("alive: %d", code)
	}
	if code := status(t, url+"/healthz", "evil.example"); code != http.StatusForbidden { // a page whose name leads here
		t.Errorf("asked as another host: %d", code)
	}
	var text string
	wait.Eventually(t, patience, func() bool { // either of two servers settles the task
		text = get(t, url+"/metrics")
		return strings.Contains(text, `tdf_tasks_ended_total{namespace="`+w.Namespace+`",outcome="failed",queue="default"} 1`)
	}, "the failed task is not counted")
	contains(t, "the metrics", text, "tdf_redis_used_memory_bytes", "tdf_build_info", "go_goroutines", "process_open_fds")
	w.knowsTheMetrics(t, text)
	w.Server.Pause(t)
	t.Cleanup(func() { w.Server.Resume(t) })
	wait.Eventually(t, patience, func() bool { return status(t, url+"/readyz", "") == http.StatusServiceUnavailable }, "it is ready without Redis")
	if code := status(t, url+"/healthz", ""); code != http.StatusOK {
		t.Errorf("alive without Redis: %d", code)
	}
	w.Server.Resume(t)
	wait.Eventually(t, patience, func() bool { return status(t, url+"/readyz", "") == http.StatusOK }, "it is not ready again")
	if first := w.daemons[0]; strings.Contains(first.Log.String(), "answering") {
		t.Errorf("a server answers without having been asked to: %s", first.Log)
	}
}

// metricName is how one is called.
var metricName = regexp.MustCompile(`\btdf_[a-z_]+`)

// knowsTheMetrics checks that dashboard, alerts and docs name metrics that a server gives, and the docs all of them.
func (w *world) knowsTheMetrics(t *testing.T, text string) {
	t.Helper()
	root := filepath.Join("..", "..")
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	given := map[string]bool{}
	for _, name := range metricName.FindAllString(text, -1) {
		given[name] = true
	}
	for _, name := range []string{"deploy/dashboard.json", "deploy/alerts.yml"} {
		for _, used := range metricName.FindAllString(read(name), -1) {
			if !given[used] {
				t.Errorf("%s: there is no metric %s", name, used)
			}
		}
	}
	docs := read("docs/OPERATIONS.md")
	for name := range given {
		if !strings.Contains(docs, "`"+name+"`") {
			t.Errorf("docs/OPERATIONS.md does not explain %s", name)
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Labels      map[string]string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read("deploy/alerts.yml")), &rules); err != nil || len(rules.Groups) != 1 || len(rules.Groups[0].Rules) == 0 {
		t.Fatalf("deploy/alerts.yml: %v, %+v", err, rules)
	}
	for _, rule := range rules.Groups[0].Rules {
		if rule.Expr == "" || rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("alert %+v is incomplete", rule)
		}
	}
}

// Others than this host are answered only where somebody has said that they may be.
func TestHTTPFromElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, problem, code := daemontest.Run(t, exec.Command(program(t, "tdf-server"), w.cfg, "--set", "http.listen=0.0.0.0:7480"))
	contains(t, "the refusal", problem, `[http] listen = "0.0.0.0:7480": not a loopback address`, "cert_file", "insecure=true")
	if code != 2 {
		t.Errorf("exit code %d", code)
	}
	_, url := w.httpServer(t, "http.listen=127.0.0.1:0", "http.insecure=true")
	if code := status(t, url+"/healthz", "evil.example"); code != http.StatusForbidden {
		t.Errorf("asked as another host on an address of this one alone: %d", code)
	}
	_, url = w.httpServer(t, "http.listen=0.0.0.0:0", "http.insecure=true")
	port := url[strings.LastIndex(url, ":"):]
	if code := status(t, "http://127.0.0.1"+port+"/healthz", "node-1.example"); code != http.StatusOK {
		t.Errorf("asked by a name of this host: %d", code)
	}
	_, problem, code = daemontest.Run(t, exec.Command(program(t, "tdf-server"), w.cfg, "--set", "http.listen=127.0.0.1"+port))
	contains(t, "the refusal", problem, "[http] listen", "cannot be listened on", "write another port")
	if code != 2 {
		t.Errorf("exit code %d", code)
	}
}

// With a certificate others are answered, over TLS alone.
func TestHTTPOverTLS(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t), t.TempDir()
	authority, cert, key := hosttest.NewAuthority(t, filepath.Join(dir, "ca.pem")), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	authority.Sign(t, cert, key, "node-1.example")
	_, url := w.httpServer(t, "http.listen=0.0.0.0:0", "http.cert_file="+cert, "http.key_file="+key)
	if !strings.HasPrefix(url, "https://") {
		t.Errorf("the log says %s", url)
	}
	at := "127.0.0.1" + url[strings.LastIndex(url, ":"):] + "/healthz"
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Pool, ServerName: "node-1.example"}}}
	if code := statusBy(t, client, "https://"+at, "node-1.example"); code != http.StatusOK {
		t.Errorf("over TLS: %d", code)
	}
	if code := status(t, "http://"+at, ""); code != http.StatusBadRequest {
		t.Errorf("without TLS: %d", code)
	}
}
