package acceptance

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	sm "github.com/tdf-go/tdf/statemachine"
)

// told is what HTTP answers to a request with a token.
func told(t *testing.T, url, token string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v\n%s", url, reply.Status, err, text)
	}
	return text
}

// passing are the parts of an answer that time changes.
var passing = regexp.MustCompile(`"(heartbeat|heartbeat_age)": [^,\n]+|\([0-9.ms]+\)`)

// What HTTP answers is what the command line prints with --json, to the byte. The server needs no more than the login of a server.
func TestHTTPIsWhatVerbsPrint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "slots=2")
	_, url := w.httpServer(t, "http.listen=127.0.0.1:0")
	w.worker(t, "w")
	stdout, _ := w.manage(t, 0, "token", "add", "reader", "--role", "read")
	token := strings.TrimSpace(stdout)
	w.manage(t, 1, "submit", "--wait", "--each-line", w.file(t, "lines", "echo <&>\necho no >&2; exit 3\necho yes\n", 0o644))
	w.manage(t, 0, "submit", "--hold=for later", "--", "echo", "held")
	w.manage(t, 0, "queue", "add", "nightly", "threads=3")
	w.await(t, 4, sm.Blocked)
	for path, args := range map[string]string{
		"tasks": "ls", "tasks?state=failed": "ls --state failed", "tasks?tasks=j1&limit=50": "ls j1",
		"tasks/2": "show 2", "tasks/2/why": "why 2", "tasks/4/why": "why 4", "tasks/1/history": "history 1",
		"jobs": "jobs", "jobs?limit=1": "jobs --limit 1", "jobs/j1": "show j1", "stats": "stats",
		"queues": "queue ls", "queues/nightly": "queue show nightly", "queues/nightly/why": "why --queue nightly",
		"nodes": "node ls", "workers": "worker ls", "workers?all=true": "worker ls --all", "workers/w": "worker show w",
	} {
		got := passing.ReplaceAll(told(t, url+"/api/v1/"+path, token), nil)
		stdout, _ := w.manage(t, 0, append(strings.Fields(args), "--json")...)
		if want := passing.ReplaceAll([]byte(stdout), nil); !bytes.Equal(got, want) {
			t.Errorf("%s:\n%s\n%s --json:\n%s", path, got, args, want)
		}
	}
	w.sound(t)
}

var shellBlocks = regexp.MustCompile("(?s)```sh\n(.*?)```")

// The commands of docs/HTTP.md do what it says, with curl and jq.
func TestHTTPDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "slots=2")
	_, url := w.httpServer(t, "http.listen=127.0.0.1:0")
	w.worker(t, "w")
	page, err := os.ReadFile("../../docs/HTTP.md")
	if err != nil {
		t.Fatal(err)
	}
	script := "set -eu\n"
	for i, block := range shellBlocks.FindAllStringSubmatch(string(page), -1) {
		script += block[1]
		if i == 2 {
			script += "tdf-manager --config site.cfg wait all >/dev/null\n" // before it is looked at
		}
	}
	script = strings.NewReplacer("site.cfg", w.cfg, "http://127.0.0.1:7480", url).Replace(script)
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program(t, "tdf-manager"))+":"+os.Getenv("PATH"))
	stdout, stderr, code := daemontest.Run(t, cmd)
	stdout = regexp.MustCompile(`[ \n]+`).ReplaceAllString(stdout, " ")
	const want = `1 2 { "state": "completed", "total": 100, "left": 0 } { "state": "archived", "outcome": "succeeded", "output": "1\n2\n3\n" } 0 `
	if code != 0 || !strings.HasPrefix(stdout, want) || !strings.HasSuffix(stdout, ` 0 [ 1 ] `) {
		t.Errorf("it ended with %d:\n%s\n%s", code, stdout, stderr)
	}
}
