package acceptance

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
)

// told is what HTTP answers to a request with a token.
func told(t *testing.T, method, url, token, body string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode/100 != 2 {
		t.Fatalf("%s: %s, %v\n%s", url, reply.Status, err, text)
	}
	return text
}

// passing are the parts of an answer that time changes, or that a worker reckons anew from its own clock.
var passing = regexp.MustCompile(`"(heartbeat|heartbeat_age|installed|used)": [^,\n]+|\([0-9.ms]+\)`)

// same compares an answer with what a verb prints.
func same(t *testing.T, w *world, got []byte, args string) {
	t.Helper()
	stdout, _ := w.manage(t, 0, append(strings.Fields(args), "--json")...)
	got = passing.ReplaceAll(got, nil)
	if want := passing.ReplaceAll([]byte(stdout), nil); !bytes.Equal(got, want) {
		t.Errorf("HTTP answers:\n%s\n%s --json prints:\n%s", got, args, want)
	}
}

// What HTTP answers is what the command line prints with --json, to the byte. The server needs no more than the login of a server.
func TestHTTPIsWhatVerbsPrint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "slots=2")
	_, url := w.httpServer(t, "http.listen=127.0.0.1:0")
	w.worker(t, "w")
	stdout, _ := w.manage(t, 0, "token", "add", "reader", "--role", "admin")
	token := strings.TrimSpace(stdout)
	w.manage(t, 1, "submit", "--wait", "--each-line", w.file(t, "lines", "echo <&>\necho no >&2; exit 3\necho yes\n", 0o644))
	w.manage(t, 0, "submit", "--hold=for later", "--", "echo", "held")
	w.manage(t, 0, "queue", "add", "nightly", "threads=3", "paused=true")
	w.manage(t, 0, "queue", "add", "idle")
	w.manage(t, 0, "series", "add", "yearly", "--cron", "0 0 1 1 *", "--zone", "Asia/Tokyo", "--end-before", "+10m", "-e", "A=secret", "--", "echo", "1  2")
	w.await(t, 4, sm.Blocked)
	w.await(t, w.open(t, w.script(t, "sum", "echo 1"))[0], sm.Succeeded)
	file := w.file(t, "plan.yaml", "steps:\n  one: {source: 'command:echo', queue: nightly}\n  two: {source: 'command:cat', needs: [one]}\n", 0o644)
	plan := strings.TrimSpace(first(w.manage(t, 0, "plan", "submit", file)))
	w.manage(t, 0, "replay", "3")
	for path, args := range map[string]string{
		"tasks": "ls", "tasks?state=failed": "ls --state failed", "tasks?tasks=j1&limit=50": "ls j1",
		"tasks/2": "show 2", "tasks/2/why": "why 2", "tasks/4/why": "why 4", "tasks/1/history": "history 1",
		"jobs": "jobs", "jobs?limit=1": "jobs --limit 1", "jobs/j1": "show j1", "stats": "stats", "plans": "plan ls", "plans?limit=1": "plan ls --limit 1", "plans/" + plan: "plan show " + plan, "plans/1": "plan show j1",
		"wait?tasks=3": "wait 3", "wait?program=sum": "wait --program sum", "tasks/8/replay": "replay --compare 8",
		"programs": "program ls", "programs?worker=w": "program ls --worker w", "programs/sum": "program show sum",
		"queues": "queue ls", "queues/nightly": "queue show nightly", "queues/nightly/why": "why --queue nightly",
		"series": "series ls", "series?after=x&limit=1": "series ls --after x --limit 1", "series/yearly": "series show yearly",
		"nodes": "node ls", "workers": "worker ls", "workers?all=true": "worker ls --all", "workers/w": "worker show w",
	} {
		same(t, w, told(t, http.MethodGet, url+"/api/v1/"+path, token, ""), args)
	}
	for request, args := range map[string]string{
		`POST queues {"name":"big","set":{"threads":"2"},"dry_run":true}`:                   "queue add big threads=2",
		`PATCH queues/nightly {"set":{"threads":"2"},"dry_run":true}`:                       "queue set nightly threads=2",
		"POST queues/nightly/pause?dry_run=true":                                            "queue pause nightly",
		"POST queues/nightly/resume?dry_run=true":                                           "queue resume nightly",
		"DELETE queues/idle?dry_run=true":                                                   "queue rm idle",
		`PATCH nodes/n9 {"set":{"maxthreads":"2"},"dry_run":true}`:                          "node set n9 maxthreads=2",
		"POST workers/w/drain?dry_run=true":                                                 "worker drain w",
		"POST workers/all/stop?dry_run=true":                                                "worker stop all",
		"POST workers/w/undrain?dry_run=true":                                               "worker undrain w",
		"POST tasks/3/replay?dry_run=true":                                                  "replay 3",
		`PATCH series/yearly {"set":{"overlap":"queue","task_comment":"3"},"dry_run":true}`: "series set yearly overlap=queue task_comment=3",
		"POST series/yearly/pause?dry_run=true":                                             "series pause yearly",
		"POST series/yearly/resume?dry_run=true":                                            "series resume yearly",
		"DELETE series/yearly?dry_run=true":                                                 "series rm yearly",
		"GET tokens":                                                                        "token ls",
		"GET changes":                                                                       "changes",
		"DELETE tokens/reader?dry_run=true":                                                 "token rm reader",
	} {
		parts := append(strings.Fields(request), "")
		if parts[0] != http.MethodGet {
			args += " --dry-run"
		}
		same(t, w, told(t, parts[0], url+"/api/v1/"+parts[1], token, parts[2]), args)
	}
	w.changesAlike(t, url, plan)
	w.sound(t)
}

// changesAlike changes things twice, by HTTP and by a verb, where the second time has the same answer.
func (w *world) changesAlike(t *testing.T, url, plan string) {
	t.Helper()
	token := strings.TrimSpace(first(w.manage(t, 0, "token", "add", "operator", "--role", "operate")))
	for _, c := range [][4]string{
		{http.MethodDelete, "programs/sum?dry_run=true", "", "program rm --dry-run sum"},
		{http.MethodDelete, "programs?unused_for=100000&dry_run=true", "", "program gc --dry-run"},
		{http.MethodDelete, "programs?unused_for=100000", "", "program gc"},
		{http.MethodPost, "plans/" + plan + "/retry", `{"dry_run":true}`, "plan retry --dry-run " + plan},
		{http.MethodPost, "plans/" + plan + "/resume", "", "plan resume " + plan},
		{http.MethodPost, "plans/" + plan + "/cancel", "", "plan cancel " + plan},
	} {
		same(t, w, told(t, c[0], url+"/api/v1/"+c[1], token, c[2]), c[3])
	}
}

func first(text, _ string) string { return text }

var shellBlocks = regexp.MustCompile("(?s)```sh\n(.*?)```")

// blocks are the commands of a page of docs.
func blocks(t *testing.T, page string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range shellBlocks.FindAllStringSubmatch(string(text), -1) {
		all = append(all, block[1])
	}
	return all
}

// shell runs the commands of a page with our programs, and replaces words in them, such as the name of the configuration. Of blanks and
// line feeds in stdout there is one each.
func (w *world) shell(t *testing.T, commands []string, replace ...string) (stdout, stderr string, code int) {
	t.Helper()
	script := "set -eu\n" + strings.Join(commands, "")
	cmd := exec.Command("bash", "-c", strings.NewReplacer(replace...).Replace(script))
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program(t, "tdf-manager"))+":"+os.Getenv("PATH"))
	stdout, stderr, code = daemontest.Run(t, cmd)
	return regexp.MustCompile(`[ \n]+`).ReplaceAllString(stdout, " "), stderr, code
}

// The commands of docs/HTTP.md do what it says, with curl and jq.
func TestHTTPDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "slots=2")
	_, url := w.httpServer(t, "http.listen=127.0.0.1:0")
	w.worker(t, "w")
	page := blocks(t, "HTTP.md")
	page[2] += "tdf-manager --config site.cfg wait all >/dev/null\n" // before it is looked at
	stdout, stderr, code := w.shell(t, page, "site.cfg", w.cfg, "http://127.0.0.1:7480", url)
	const want = `1 2 102 { "state": "completed", "total": 100, "left": 0 } { "state": "archived", "outcome": "succeeded", "output": "1\n2\n3\n" } 0 `
	if code != 0 || !strings.HasPrefix(stdout, want) || !strings.HasSuffix(stdout, ` 0 [ 1 ] [103] [ 103 ] 20 {"maxthreads":["unlimited","2"]} true w 1 1 ["four","lines"] recorded `) {
		t.Errorf("it ended with %d:\n%s\n%s", code, stdout, stderr)
	}
}

// The commands of docs/SERIES.md do what it says, and a server fires what is due.
func TestSeriesDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "slots=2")
	w.server(t)
	w.worker(t, "w")
	stdout, stderr, code := w.shell(t, blocks(t, "SERIES.md"), "tdf-manager ", "tdf-manager --config "+w.cfg+" ")
	for _, want := range []string{
		"added series nightly; it is due first at", "30 2 * * 1-5 Europe/Berlin", "series nightly: began occurrence 1, task ", "series nightly: resumed", "removed series poll",
	} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("it ended with %d, without %q:\n%s\n%s", code, want, stdout, stderr)
		}
	}
	wait.Eventually(t, 30*time.Second, func() bool {
		out, _ := w.manage(t, 0, "series", "show", "crawl", "--json")
		var crawl struct {
			Next    time.Time
			Number  int
			History []struct{ Task int64 }
		}
		if err := json.Unmarshal([]byte(out), &crawl); err != nil {
			t.Fatal(err)
		}
		return crawl.Number == 1 && time.Until(crawl.Next) > 50*time.Minute
	}, "the program has not said when it runs next")
	w.sound(t)
}
