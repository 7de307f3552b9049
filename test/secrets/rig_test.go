package secrets

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
)

const patience = 45 * time.Second

// rig is a namespace with a directory in which all files of a test are.
type rig struct {
	t       *testing.T
	srv     *redistest.Server
	ns, dir string
	// redis are the lines of [redis] for a role.
	redis func(role string) string
	// env is what every program has in its environment, beside that of the test.
	env     []string
	daemons []*daemontest.Daemon
}

func newRig(t *testing.T, srv *redistest.Server, redis func(role string) string) *rig {
	t.Helper()
	r := &rig{t: t, srv: srv, ns: redistest.Namespace(t), dir: t.TempDir(), redis: redis}
	if err := os.Chmod(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { daemontest.Stop(t, r.daemons) })
	return r
}

const settings = `[redis]
%s
[tdf]
namespace=%s
[server]
round_duration=0.3
timeout_grace=0.5
repair_interval=0.2
worker_timeout=2
[worker]
kill_grace=0.2
drain_timeout=1
slots=2
require_containment=false
program_dir=%s
[manager]
round_duration=0.2
`

// config writes the configuration of a role.
func (r *rig) config(role string) string {
	r.t.Helper()
	return r.file(role+".cfg", fmt.Sprintf(settings, r.redis(role), r.ns, r.own("programs")), 0o600)
}

func (r *rig) file(name, content string, mode os.FileMode) string {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	hosttest.WriteProgram(r.t, path, content, mode)
	return path
}

func (r *rig) own(name string) string {
	r.t.Helper()
	dir := filepath.Join(r.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.t.Fatal(err)
	}
	return dir
}

// start runs a program in a directory of its own until the test ends.
func (r *rig) start(name string, args ...string) *daemontest.Daemon {
	r.t.Helper()
	cmd := exec.Command(built.Path(r.t, name), args...)
	cmd.Dir, cmd.Env = r.own("run-"+name), r.env
	d := daemontest.Start(r.t, patience, cmd)
	r.daemons = append(r.daemons, d)
	return d
}

// crew starts a server, waits until it has published its settings, and starts a worker.
func (r *rig) crew() (server, worker *daemontest.Daemon) {
	r.t.Helper()
	server = r.start("tdf-server", "s", r.config("server"), "--set", "http.listen=127.0.0.1:0")
	wait.Eventually(r.t, patience, func() bool {
		if server.Ended() {
			r.t.Fatalf("the server ended:\n%s", server.Log)
		}
		return r.srv.Do(r.t, "HGET", r.ns+":meta", "server_seen") != nil
	}, "no server has begun")
	return server, r.start("tdf-worker", "w", r.config("worker"))
}

// result is what a run of tdf-manager left.
type result struct {
	code     int
	out, err string
}

// verb runs tdf-manager with the configuration of a role.
func (r *rig) verb(role string, args ...string) result {
	r.t.Helper()
	program := built.Path(r.t, "tdf-manager") // which may take a while
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{"--config", r.config(role)}, args...)...)
	cmd.Dir, cmd.Env = r.dir, r.env
	var got result
	got.out, got.err, got.code = daemontest.Run(r.t, cmd)
	return got
}

// must runs a verb that ends well.
func (r *rig) must(role string, args ...string) string {
	r.t.Helper()
	got := r.verb(role, args...)
	if got.code != 0 {
		r.t.Errorf("%s: %v ended with %d:\n%s%s", role, args, got.code, got.out, got.err)
	}
	return got.out
}

// submit opens a task that runs a script; flags go before.
func (r *rig) submit(name, body string, flags ...string) string {
	r.t.Helper()
	file := r.file(filepath.Join("sources", name, "run.sh"), "#!/bin/sh\n"+body+"\n", 0o755)
	out := r.must("manager", append([]string{"submit", "--program", name, "--source", "rsync:" + file}, flags...)...)
	id := regexp.MustCompile(`\d+`).FindString(out)
	if id == "" {
		r.t.Fatalf("submit printed %q", out)
	}
	return id
}

// becomes waits until a task is in a state, or archived with that outcome.
func (r *rig) becomes(id, state string) {
	r.t.Helper()
	var last any
	wait.Eventually(r.t, patience, func() bool {
		last = r.srv.Do(r.t, "HMGET", r.ns+":task:"+id, "state", "outcome")
		is, _ := last.([]any)
		return slices.Contains(is, any(state))
	}, "task %s is not %s, but %v", id, state, &last)
}
