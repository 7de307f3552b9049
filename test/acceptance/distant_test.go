package acceptance

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// distant starts a worker that knows nothing but the address of a server and its token, with further settings of [worker].
func (w *world) distant(t *testing.T, url, name string, set ...string) *daemon {
	t.Helper()
	token := filepath.Join(w.dir, name+".token")
	if _, err := os.Stat(token); errors.Is(err, os.ErrNotExist) { // else it was here before
		w.file(t, name+".token", first(w.manage(t, 0, "token", "add", name, "--role", "work")), 0o600)
	}
	args := []string{name, "--url", url}
	for _, s := range append([]string{"kill_grace=0.2", "temp_dir=" + w.private}, set...) {
		args = append(args, "--set", "worker."+s)
	}
	cmd := exec.Command(program(t, "tdf-worker"), args...)
	cmd.Dir, cmd.Env = w.own(t, name), []string{"TDF_TOKEN_FILE=" + token}
	return w.start(t, cmd)
}

// A worker without Redis does what one with Redis does: it fetches what was sent along, gives it stdin and the results of other
// tasks, sends back files and output of any length, and knows neither Redis nor its own token in what it runs.
func TestDistantWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, url := w.httpServer(t, "http.listen=127.0.0.1:0")
	w.distant(t, url, "lab-1", "slots=2")
	w.file(t, "project/sim", "#!/bin/sh\nmkdir out; tee out/copy | tr a-z A-Z; cat data; echo \"$@\"; env | grep -c 'TDF_TOKEN\\|TDF_URL'; :\n", 0o755)
	w.file(t, "project/data", "along\n", 0o644)
	w.file(t, "in", "from stdin\n", 0o644)
	w.manage(t, 0, "submit", "--upload", "project", "--stdin", "in", "--return", "out", "--", "./sim", "a b")
	ran := w.await(t, 1, sm.Succeeded)
	checkFields(t, ran, map[string]string{"0:worker": "lab-1", "0:output": "FROM STDIN\nalong\na b\n0\n", "0:error": "", "0:exit_code": "0"})
	wantReturned(t, w, ran, map[string]string{"out/copy": "from stdin\n"})

	shelf := newShelf(t, w, map[string][]byte{"p.tar": tarOf(t, entry{name: "run.sh", body: "#!/bin/sh\n" +
		`for a; do echo "<$a>"; done; printf 'progress=0.5 half\nattr phase=load\nresult=of %s' "$1" >>"$TDF_CONTROL"` + "\n", mode: 0o755})})
	w.file(t, "plan.yaml", `defaults: {program: p, source: "`+shelf.url+`/p.tar"}
steps:
  one: {argv: ["first\nline"]}
  two: {argv: [2], needs: [one]}
`, 0o644)
	w.manage(t, 0, "plan", "submit", "plan.yaml", "--pin", "off")
	w.manage(t, 0, "wait", "all")
	checkFields(t, w.Task(t, 3), map[string]string{"0:output": "<2>\n<of first>\n", "0:result": "of 2", "0:error": ""})
	if meta := task.Decode(3, w.Task(t, 3).Fields).Meta; meta["phase"] != "load" {
		t.Errorf("the attributes are %v", meta)
	}

	w.manage(t, 1, "submit", "--wait", "--max-fails", "0", "--", "sh", "-c", "seq 400000; printf '\\377\\0' >&2; exit 3")
	failed := w.await(t, 4, sm.Failed)
	checkFields(t, failed, map[string]string{"0:exit_code": "3", "0:class": "program"})
	token := strings.TrimSpace(first(w.manage(t, 0, "token", "add", "reader", "--role", "read")))
	var want bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "seq", "400000")
	cmd.Stdout = &want
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if got := told(t, "GET", url+"/api/v1/tasks/4/output", token, ""); !bytes.Equal(got, want.Bytes()) {
		t.Errorf("of %d bytes of output there are %d", want.Len(), len(got))
	}
	if got := told(t, "GET", url+"/api/v1/tasks/4/error", token, ""); !strings.HasPrefix(string(got), "\xff\x00") {
		t.Errorf("stderr is %q", got)
	}
	w.sound(t)
}

// What runs at a worker without Redis is followed, cancelled, stopped when its time is over, and drained as any other.
func TestDistantWorkerObeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, url := w.httpServer(t, "http.listen=127.0.0.1:0", shortLeaseSet)
	w.leasePublished(t)
	worker := w.distant(t, url, "lab-1", "slots=2", "drain_timeout=1")

	live := w.script(t, "live", `printf 'one\ntw'; echo > "$1.begun"; until [ -e "$1.go" ]; do sleep 0.05; done; echo o`)
	live.Input = filepath.Join(w.dir, "sign")
	id := w.open(t, live)[0]
	made(t, live.Input+".begun")
	seen := w.start(t, &exec.Cmd{Path: program(t, "tdf-manager"), Dir: t.TempDir(), Args: []string{
		"tdf-manager", "--config", w.cfg, "logs", "--follow", id2text(id),
	}})
	seen.Says(t, "one\ntw")
	if state := w.state(t, id); state != sm.Running {
		t.Errorf("the task that is followed is %s", state)
	}
	w.file(t, "sign.go", "", 0o644)
	wait.Closed(t, patience, seen.Done, "the reader does not end")
	if got := seen.Log.String(); got != "one\ntwo\n" {
		t.Errorf("the reader says %q", got)
	}

	spec := w.script(t, "tree", tree)
	spec.Input = w.dir + "/tree"
	id = w.open(t, spec)[0]
	made(t, spec.Input+".begun")
	w.manage(t, 0, "cancel", id2text(id), "--reason", "enough")
	ended := w.await(t, id, sm.Terminated)
	contains(t, "the record", ended.Fields["0:output"]+ended.Fields["0:stderr"]+ended.Fields["cancel_reason"], "partial", "enough")
	if left := w.left("tree"); len(left) != 0 {
		t.Errorf("processes %v are left of the cancelled task", left)
	}
	id = w.submitted(t, w.script(t, "slow", "echo slow; sleep 600"), "--timeout", "0.5", "--max-timeouts", "0")
	ended = w.await(t, id, sm.TimedOut)
	checkFields(t, ended, map[string]string{"0:timeout": "*", "0:output": "slow\n", "timeouts": "1"})
	if left := w.left("slow"); len(left) != 0 {
		t.Errorf("processes %v are left of the task whose time is over", left)
	}

	beats, l := w.beating(t)
	ids := w.open(t, beats, beats)
	l.begun(t, 0, 2)
	w.order(t, "drain", "lab-1")
	w.becomes(t, "lab-1", "draining")
	l.release(t, ids...)
	for _, id := range ids {
		w.await(t, id, sm.Succeeded)
	}
	w.becomes(t, "lab-1", "drained")
	second := w.open(t, w.script(t, "p", "sleep 600"))[0]
	w.order(t, "undrain", "lab-1")
	w.await(t, second, sm.Running)
	w.order(t, "stop", "lab-1")
	worker.Finish(t)
	w.becomes(t, "lab-1", "stopped")
	checkFields(t, w.await(t, second, sm.Open), map[string]string{"releases": "1", "round": "1", "losses": "-"})
	l.noOverlap(t)
	w.sound(t)
}

// A worker without Redis is killed: nothing of its tasks survives, and each runs once more, at another one.
func TestDistantWorkerKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.archiver(t)
	_, url := w.httpServer(t, "http.listen=127.0.0.1:0", shortLeaseSet)
	w.leasePublished(t)
	dies := w.distant(t, url, "dies", "slots=8")
	ids, l := w.eight(t, "dies")
	w.distant(t, url, "other", "slots=8")
	at := w.kill(t, dies)
	w.noneLeft(t, "dies")
	w.allBack(t, ids, at, shortLease+sm.Second)
	w.finishElsewhere(t, ids, l)
}

// The server is away while rounds end, and so is, later, the worker that has kept their results: each arrives once.
func TestDistantResultsOutliveServer(t *testing.T) {
	t.Parallel()
	for name, dies := range map[string]bool{"the worker stays": false, "the worker dies too": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			server, url := w.httpServer(t, "http.listen=127.0.0.1:0", "server.worker_timeout=60")
			w.leasePublished(t)
			worker := w.distant(t, url, "lab-1", "slots=2")
			spec, l := w.beating(t)
			ids := w.open(t, spec, spec)
			l.begun(t, 0, 2)
			w.leave(t, server)
			l.release(t)
			wait.Eventually(t, patience, func() bool { return len(w.spooled(t, "lab-1")) == 2 }, "the worker keeps %v",
				late(func() string { return strings.Join(w.spooled(t, "lab-1"), " ") }))
			if dies {
				w.killAtOnce(t, worker)
			}
			at := strings.TrimPrefix(url, "http://")
			w.httpServer(t, "http.listen="+at, "server.worker_timeout=60")
			if dies {
				w.distant(t, url, "lab-1", "slots=2")
			}
			for _, id := range ids {
				checkFields(t, w.await(t, id, sm.Succeeded), map[string]string{
					"round": "0", "0:worker": "lab-1", "0:output": "round 0 by lab-1\n", "losses": "-", "releases": "-", "0:error": "",
				})
			}
			wait.Eventually(t, patience, func() bool { return len(w.spooled(t, "lab-1")) == 0 }, "results stay on the disk")
			l.noOverlap(t)
			w.sound(t)
		})
	}
}

// spooled are the results that a worker keeps on its disk.
func (w *world) spooled(t *testing.T, name string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(w.dir, name, ".tdf", "spool", "*", "*", "*.result"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Over TLS a worker trusts whom SSL_CERT_FILE names and nobody else. Nothing of its token is said.
func TestDistantWorkerOverTLS(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t), t.TempDir()
	authority, cert, key := hosttest.NewAuthority(t, filepath.Join(dir, "ca.pem")), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	authority.Sign(t, cert, key, "localhost")
	_, url := w.httpServer(t, "http.listen=127.0.0.1:0", "http.cert_file="+cert, "http.key_file="+key)
	url = strings.Replace(url, "127.0.0.1", "localhost", 1)
	stranger := w.distant(t, url, "stranger")
	stranger.Killed = true // what it ends with is not the question
	stranger.Says(t, "certificate")
	w.environ = append(w.environ, "SSL_CERT_FILE="+filepath.Join(dir, "ca.pem"))
	knows := w.distant(t, url, "knows")
	id := w.open(t, w.script(t, "p", "echo safe"))[0]
	checkFields(t, w.await(t, id, sm.Succeeded), map[string]string{"0:worker": "knows", "0:output": "safe\n"})
	for _, d := range []*daemon{stranger, knows} {
		if secret := content(t, filepath.Join(w.dir, filepath.Base(d.Dir)+".token")); strings.Contains(d.Log.String(), strings.TrimSpace(secret)) {
			t.Errorf("%s says its token", filepath.Base(d.Dir))
		}
	}
}

// A name is one process's, also over HTTP, and a second one says whose it is. A token that is revoked ends its worker.
func TestDistantNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, url := w.httpServer(t, "http.listen=127.0.0.1:0")
	holds := w.distant(t, url, "lab-1")
	w.await(t, w.open(t, w.script(t, "p", "true"))[0], sm.Succeeded)
	cmd := exec.Command(program(t, "tdf-worker"), slices.Replace(slices.Clone(holds.Args[1:]), 0, 1, "lab-1")...)
	cmd.Dir, cmd.Env = w.own(t, "lab-1-again"), []string{"TDF_TOKEN_FILE=" + filepath.Join(w.dir, "lab-1.token")}
	second := w.start(t, cmd)
	second.Killed = true
	wait.Closed(t, patience, second.Done, "the second worker of the name goes on")
	contains(t, "the refusal", second.Log.String(), "lab-1")
	if code := second.ProcessState.ExitCode(); code != 2 {
		t.Errorf("the second worker of the name ended with %d", code)
	}
	w.manage(t, 0, "token", "rm", "lab-1")
	holds.Killed = true
	if err := holds.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	wait.Closed(t, patience, holds.Done, "a worker whose token is revoked does not end")
}
