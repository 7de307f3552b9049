package secrets

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

// The four roles do all they are for as the users that `tdf-manager acl` prints,
// loaded from a file, and Redis refuses them nothing on the way.
func TestLifeUnderAccessLists(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"7", "6.2"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			r := limited(t, version)
			server, worker := r.crew()
			r.life()
			r.metrics(server)
			r.loss(worker)
			r.see()
			for _, refusal := range r.refusals() {
				t.Errorf("redis refused: %s", refusal)
			}
		})
	}
}

// A program may be without its scripts, after a restart of Redis or a failover,
// and may not load them itself: it waits until a server has.
func TestScriptsAreLoadedByTheServer(t *testing.T) {
	t.Parallel()
	r := limited(t, "7")
	server, worker := r.crew()
	r.becomes(r.submit("before", "echo x"), "succeeded")
	_ = server.Process.Signal(syscall.SIGSTOP)
	r.srv.Do(t, "SCRIPT", "FLUSH")
	if got := r.verb("manager", "stats"); strings.Contains(got.err, "NOPERM") {
		t.Errorf("stats: %+v", got)
	}
	if got := r.verb("manager", "submit", "--program", "p", "--source", "rsync:/x/run.sh", "--hold"); got.code != 3 ||
		!strings.Contains(got.err, "start a tdf-server of this version") {
		t.Errorf("opened without scripts: %+v", got)
	}
	_ = server.Process.Signal(syscall.SIGCONT)
	wait.Eventually(t, patience, func() bool {
		return r.verb("manager", "submit", "--program", "p", "--source", "rsync:/x/run.sh", "--hold").code == 0
	},
		"the server does not load the scripts")
	r.becomes(r.submit("after", "echo x"), "succeeded")
	if worker.Ended() {
		t.Error("the worker has ended")
	}
}

// limited makes a rig whose programs are the users that tdf-manager prints.
func limited(t *testing.T, version string) *rig {
	t.Helper()
	file := filepath.Join(t.TempDir(), "users.acl")
	admin := "user default on nopass ~* &* +@all\n"
	if err := os.WriteFile(file, []byte(admin), 0o600); err != nil {
		t.Fatal(err)
	}
	options := []redistest.Option{redistest.WithConfig("aclfile", file)}
	if version == "6.2" {
		options = append(options, redistest.WithRedis62())
	}
	srv := redistest.Start(t, options...)
	var r *rig
	r = newRig(t, srv, func(role string) string {
		return fmt.Sprintf("host=%s\nusername=tdf-%s-%s\npassword_file=%s", srv.Socket(), role, r.ns, filepath.Join(r.dir, role+".password"))
	})
	lines := admin
	for _, role := range []string{"server", "worker", "manager", "viewer"} {
		password := r.file(role+".password", "password of "+role+"\n", 0o600)
		lines += r.must(role, "acl", role, "--password-file", password, "--redis", version)
	}
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	srv.Do(t, "ACL", "LOAD")
	return r
}

// life is what happens to tasks, and what operators do.
func (r *rig) life() {
	r.t.Helper()
	ok := r.submit("ok", "echo done; echo text > file", "--archive", "manager", "--return", "file")
	retried := r.submit("retried", `[ "$TDF_ROUND" = 1 ] || exit 3`, "--max-fails", "2", "--retry-delay", "0.1")
	failed := r.submit("failed", "exit 4")
	late := r.submit("late", "sleep 60", "--timeout", "0.5", "--max-timeouts", "1")
	held := r.submit("held", "echo x", "--hold")
	stopped := r.submit("stopped", "echo began; sleep 60", "--max-fails", "1")
	called := r.submit("called", "echo x", "--hold", "--key", "k")
	r.must("manager", "cancel", called)
	r.must("manager", "release", held)
	r.must("manager", "hold", r.submit("held2", "echo x", "--start-after", "2099-01-01T00:00:00Z"))
	r.becomes(stopped, "running")
	if out := r.must("manager", "logs", stopped); strings.Contains(out, "error") {
		r.t.Errorf("logs: %s", out)
	}
	r.must("manager", "cancel", stopped)
	for id, state := range map[string]string{
		ok: "succeeded", retried: "succeeded", failed: "failed", late: "timed_out", held: "succeeded", called: "cancelled", stopped: "terminated",
	} {
		r.becomes(id, state)
	}
	r.must("manager", "results", ok, "--dir", filepath.Join(r.dir, "results"))
	if text, err := os.ReadFile(filepath.Join(r.dir, "results", ok, "files", "file")); string(text) != "text\n" {
		r.t.Errorf("returned is %q, %v", text, err)
	}
	r.follow()
	r.must("manager", "retry", failed)
	r.verb("manager", "replay", ok)
	r.queues()
	r.archive(ok)
}

func (r *rig) follow() {
	r.t.Helper()
	sign := filepath.Join(r.dir, "sign")
	id := r.submit("followed", "echo first; while [ ! -e "+sign+" ]; do sleep 0.1; done; echo second")
	r.becomes(id, "running")
	reader := r.start("tdf-manager", "--config", r.config("manager"), "logs", "-f", id)
	wait.Eventually(r.t, patience, func() bool { return strings.Contains(reader.Log.String(), "first") }, "the reader sees nothing")
	r.file("sign", "", 0o600)
	wait.Closed(r.t, patience, reader.Done, "the reader does not end")
	if !strings.Contains(reader.Log.String(), "second") {
		r.t.Errorf("the reader saw %q", reader.Log)
	}
}

// queues changes queues, nodes and workers.
func (r *rig) queues() {
	r.t.Helper()
	r.must("manager", "queue", "add", "q", "threads=1")
	id := r.submit("queued", "echo x", "--queue", "q")
	r.becomes(id, "succeeded")
	for _, args := range [][]string{
		{"queue", "set", "q", "threads=2"}, {"queue", "pause", "q"}, {"queue", "resume", "q"}, {"queue", "ls"}, {"queue", "show", "q"},
		{"node", "ls"}, {"worker", "ls"}, {"worker", "show", "w"}, {"worker", "drain", "w"}, {"worker", "undrain", "w"}, {"stats"}, {"verify"},
		{"token", "add", "ci", "--role", "read"}, {"token", "add", "t", "--role", "admin", "--expires", "1d"}, {"token", "rm", "t"},
	} {
		r.must("manager", args...)
	}
	r.verb("manager", "queue", "rm", "q") // a task of it may be there
}

// archive lets a manager take what has ended.
func (r *rig) archive(id string) {
	r.t.Helper()
	archiver := r.start("tdf-manager", "--config", r.config("manager"), "run")
	r.becomes(id, "archived")
	_ = archiver.Process.Signal(syscall.SIGTERM)
	wait.Closed(r.t, patience, archiver.Done, "the manager does not end")
}

// loss kills a worker in a round; its successor runs the next one.
func (r *rig) loss(worker *daemontest.Daemon) {
	r.t.Helper()
	id := r.submit("lost", `[ "$TDF_ROUND" != 0 ] || sleep 60`)
	r.becomes(id, "running")
	worker.Kill(r.t)
	r.start("tdf-worker", "w2", r.config("worker"))
	r.becomes(id, "succeeded")
}

// metrics reads those of the site, which the server asks for as the user that it is.
func (r *rig) metrics(server *daemontest.Daemon) {
	r.t.Helper()
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(server.Log.String())
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, url+"/metrics", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Close = true
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	if want := fmt.Sprintf("tdf_redis_up{namespace=%q} 1\n", r.ns); err != nil || !strings.Contains(string(text), want) {
		r.t.Errorf("%v: %s", err, text)
	}
}

// see is all that a viewer may do.
func (r *rig) see() {
	r.t.Helper()
	for _, args := range [][]string{
		{"stats"}, {"ls"}, {"show", "1"}, {"why", "1"}, {"logs", "1"}, {"queue", "ls"}, {"node", "ls"}, {"worker", "ls"}, {"verify"},
		{"wait", "1"}, {"token", "ls"},
	} {
		r.must("viewer", args...)
	}
}

// refusals is the log of Redis of what it refused.
func (r *rig) refusals() (all []string) {
	entries, _ := r.srv.Do(r.t, "ACL", "LOG", "128").([]any)
	for _, e := range entries {
		all = append(all, fmt.Sprint(e))
	}
	return all
}
