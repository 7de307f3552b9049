package examples

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/httpapi"
	"github.com/tdf-go/tdf/internal/base/timing"
	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
	"github.com/tdf-go/tdf/worker"
)

// foreign are the workers in other languages, with what runs them and what they need beside it. One is of a class, with its
// command; the other runs the sources of tasks.
var foreign = []struct {
	script, runs string
	needs        []string
	class        string
}{
	{script: "worker.py", runs: "python3"},
	{script: "worker.sh", runs: "sh", needs: []string{"curl", "jq", "base64", "setsid"}, class: "encode"},
}

// mostLines is how long such a worker may be.
const mostLines = 99

// doing is the program of the tasks. Its first word is given to it by the worker of a class, or by the task.
const doing = `#!/bin/sh
[ "$1" = "first word" ] || exit 9
shift
case $1 in
say) printf '%s.%s %s %s' "$TDF_TASK_ID" "$TDF_ROUND" "$MARK" "${TDF_TOKEN-none}"; printf ' [%s]' "$@" ;;
fail) echo oops >&2; exit 3 ;;
note) echo "$TDF_ROUND" >>"$2" ;;
hang) sleep 1000 & sleep 1000 ;;
esac
`

// place is a site that answers over HTTP, and a worker of it.
type place struct {
	sp         *storetest.Space
	m          *manager.Manager
	url        string
	class      string
	program    string
	name, mark string
	process    *daemontest.Daemon
}

// newPlace makes a site, with a server and HTTP.
func newPlace(t *testing.T, class string, settings ...string) *place {
	t.Helper()
	p := &place{sp: storetest.New(t), class: class, name: "w-1", program: filepath.Join(t.TempDir(), "doing")}
	p.mark = p.sp.Namespace
	hosttest.WriteProgram(t, p.program, doing, 0o755)
	serve(t, p.sp.Namespace, settings...)
	p.m = manager.New(storetest.At(t, p.sp.Where, p.sp.Namespace, nil), "test", manager.Options{})
	gateway, err := worker.NewGateway(storetest.At(t, p.sp.Where, p.sp.Namespace, nil), 10)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gateway.Close() })
	s := httptest.NewServer(httpapi.New(httpapi.Options{Manager: p.m, Gateway: gateway}))
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

// start starts the worker; the test stops it at its end.
func (p *place) start(t *testing.T, script, runs string) {
	t.Helper()
	secret, _, err := p.m.NewToken(t.Context(), task.TokenSpec{Name: p.name, Role: task.TokenWork}, manager.ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	words := []string{filepath.Join("worker", script), p.url, p.name}
	if p.class != "" {
		words = append(words, p.class, p.program, "first word")
	}
	cmd := exec.Command(runs, words...)
	cmd.Env = []string{"TDF_TOKEN=" + secret}
	p.process = daemontest.Start(t, patience, cmd)
	t.Cleanup(func() { daemontest.Stop(t, []*daemontest.Daemon{p.process}) })
}

// open opens a task with these words, and further fields.
func (p *place) open(t *testing.T, words []string, pairs ...string) int64 {
	t.Helper()
	given := []string{"class", p.class}
	if p.class == "" {
		given = []string{"source", task.CommandPrefix + p.program, "labels", task.CommandsLabel}
		words = append([]string{"first word"}, words...)
	}
	variables, err := json.Marshal(map[string]string{"MARK": p.mark})
	if err != nil {
		t.Fatal(err)
	}
	given = append(given, "variables", string(variables), "max_fails", "0")
	d := storetest.Define(append(given, pairs...)...)
	storetest.SetArgv(&d, words...)
	return p.sp.Open(t, d)[0]
}

// becomes waits until a task has that state, and returns it with its last round.
func (p *place) becomes(t *testing.T, id int64, state statemachine.State) (*task.Task, *task.Round) {
	t.Helper()
	var got *task.Task
	wait.Eventually(t, patience, func() bool {
		var err error
		if got, err = p.m.Task(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		return got.State == state
	}, "task %d is not %s", id, state)
	return got, &got.Rounds[len(got.Rounds)-1]
}

// hangs waits until the program of a task that hangs runs, and what it has started.
func (p *place) hangs(t *testing.T) {
	t.Helper()
	wait.Eventually(t, patience, func() bool { return len(hosttest.ProcessesWith("MARK="+p.mark)) == 3 }, "no program hangs")
}

// gone waits until nothing of a program is left.
func (p *place) gone(t *testing.T) {
	t.Helper()
	hosttest.AwaitNoProcess(t, patience, "MARK="+p.mark)
}

// Workers that know the interface over HTTP alone run programs, end them, and hand them back, in less than 100 lines.
func TestForeignWorkers(t *testing.T) {
	t.Parallel()
	for _, f := range foreign {
		t.Run(f.script, func(t *testing.T) {
			t.Parallel()
			for _, program := range append([]string{f.runs}, f.needs...) {
				if _, err := exec.LookPath(program); err != nil {
					t.Fatalf("%v: scripts/setup-test.sh installs what the tests need", err)
				}
			}
			text, err := os.ReadFile(filepath.Join("worker", f.script))
			if n := bytes.Count(text, []byte("\n")); err != nil || n > mostLines {
				t.Errorf("%s has %d lines, want at most %d; %v", f.script, n, mostLines, err)
			}
			p := newPlace(t, f.class)
			p.start(t, f.script, f.runs)
			p.runs(t)
			p.ends(t)
			if p.class == "" {
				p.fetches(t)
			}
			p.leaves(t)
		})
	}
}

// A worker begins no round that others may have, because its answer came late.
func TestForeignWorkerIsTold(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "", "server.worker_timeout=1")
	notes := filepath.Join(t.TempDir(), "notes")
	id := p.open(t, []string{"note", notes})
	site, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	front := httputil.NewSingleHostReverseProxy(site)
	front.ModifyResponse = func(r *http.Response) error {
		if strings.HasSuffix(r.Request.URL.Path, "/turn") {
			p.awaitLoss(t, id)
		}
		return nil
	}
	s := httptest.NewServer(front)
	t.Cleanup(s.Close)
	p.url = s.URL
	p.start(t, "worker.py", "python3")
	p.becomes(t, id, statemachine.Succeeded)
	if text, err := os.ReadFile(notes); err != nil || strings.HasPrefix(string(text), "0") {
		t.Errorf("the rounds %q have run, %v; want none that was lost", text, err)
	}
}

// awaitLoss waits until a task that is in its first round has lost its worker.
func (p *place) awaitLoss(t *testing.T, id int64) {
	t.Helper()
	for timing.Pause(t.Context(), 10*time.Millisecond) {
		if got, err := p.m.Task(t.Context(), id); err != nil || got.State != statemachine.Running || got.Losses > 0 {
			return
		}
	}
}

// runs has programs succeed and fail.
func (p *place) runs(t *testing.T) {
	t.Helper()
	words := []string{"say", "two  blanks", "a\nline", `'"$x\`, ""}
	id := p.open(t, words)
	_, r := p.becomes(t, id, statemachine.Succeeded)
	if want := fmt.Sprintf("%d.0 %s none [%s]", id, p.mark, strings.Join(words, "] [")); r.Output != want || r.Worker != p.name || *r.ExitCode != 0 {
		t.Errorf("%+v, want %q", r, want)
	}
	_, r = p.becomes(t, p.open(t, []string{"fail"}), statemachine.Failed)
	if r.ExitCode == nil || *r.ExitCode != 3 || !strings.Contains(r.Error, "oops") || r.Class != statemachine.ClassProgram {
		t.Errorf("%+v", r)
	}
	_, r = p.becomes(t, p.open(t, []string{"say"}, "stdin", "blob:sha256="+strings.Repeat("0a", 32)), statemachine.Failed)
	if !strings.Contains(r.Error, "nothing for stdin") {
		t.Errorf("%+v", r)
	}
}

// ends has programs ended that are overdue or cancelled.
func (p *place) ends(t *testing.T) {
	t.Helper()
	overdue := p.open(t, []string{"hang"}, "timeout", "5", "max_timeouts", "0")
	p.hangs(t)
	p.becomes(t, overdue, statemachine.TimedOut)
	p.gone(t)
	stopped := p.open(t, []string{"hang"})
	p.hangs(t)
	if _, err := p.m.Cancel(t.Context(), []int64{stopped}, manager.ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	p.becomes(t, stopped, statemachine.Terminated)
	p.gone(t)
}

// leaves has the worker end: it hands back what it runs.
func (p *place) leaves(t *testing.T) {
	t.Helper()
	id := p.open(t, []string{"hang"})
	p.hangs(t)
	p.process.Signal(t, syscall.SIGTERM)
	p.process.Finish(t)
	p.gone(t)
	if got, _ := p.becomes(t, id, statemachine.Open); got.Releases != 1 || got.Losses != 0 {
		t.Errorf("%+v", got)
	}
	if w, err := p.m.Worker(t.Context(), p.name); err != nil || w.State != task.WorkerStopped {
		t.Errorf("%+v, %v", w, err)
	}
}

// fetches has programs fetched from a web server, and others refused.
func (p *place) fetches(t *testing.T) {
	t.Helper()
	var archive bytes.Buffer
	packed := tar.NewWriter(&archive)
	err := packed.WriteHeader(&tar.Header{Name: "run.sh", Mode: 0o755, Size: int64(len(doing)), Typeflag: tar.TypeReg})
	if err == nil {
		_, err = packed.Write([]byte(doing))
	}
	if err != nil || packed.Close() != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"/run.sh": []byte(doing), "/p.tar": archive.Bytes()}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if file, is := files[r.URL.Path]; is {
			_, _ = w.Write(file)
		} else {
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(web.Close)
	pin := func(file string) string { return task.Pin(fmt.Sprintf("%X", sha256.Sum256(files[file]))) }
	for _, source := range []string{"/run.sh", "/p.tar", "/run.sh" + pin("/run.sh"), "/p.tar" + pin("/p.tar")} {
		_, r := p.becomes(t, p.open(t, []string{"say", "a b"}, "source", web.URL+source), statemachine.Succeeded)
		if !strings.HasSuffix(r.Output, "none [say] [a b]") {
			t.Errorf("%s: %+v", source, r)
		}
	}
	for _, refused := range [][2]string{
		{web.URL + "/p.tar" + pin("/run.sh"), "SHA-256"}, {web.URL + "/none/run.sh", "404"}, {"rsync:/none/run.sh", "rsync"},
		{"blob:sha256=" + strings.Repeat("0a", 32), "404"}, {"command:/none", "/none"},
	} {
		_, r := p.becomes(t, p.open(t, []string{"say"}, "source", refused[0], "max_faults", "0"), statemachine.Failed)
		if !strings.Contains(r.Error, refused[1]) || r.Class != statemachine.ClassFetch {
			t.Errorf("%s: %+v", refused, r)
		}
	}
}
