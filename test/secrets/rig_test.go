package secrets

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/proctest"
	"github.com/tdf-go/tdf/internal/redistest"
	"github.com/tdf-go/tdf/internal/wait"
)

const patience = 45 * time.Second

// text gathers what a program prints.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *text) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *text) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// rig is a namespace with a directory in which all files of a test are.
type rig struct {
	t       *testing.T
	srv     *redistest.Server
	ns, dir string
	// redis are the lines of [redis] for a role.
	redis func(role string) string
	// env is what every program has in its environment, beside that of the test.
	env     []string
	daemons []*daemon
}

func newRig(t *testing.T, srv *redistest.Server, redis func(role string) string) *rig {
	t.Helper()
	r := &rig{t: t, srv: srv, ns: redistest.Namespace(t), dir: t.TempDir(), redis: redis}
	if err := os.Chmod(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.stopAll)
	return r
}

const settings = `[redis]
%s
[tdf]
namespace=%s
[server]
round_duration=0.3
timeout_grace=0.2
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
	proctest.WriteProgram(r.t, path, content, mode)
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

// daemon is a program that runs until the test ends.
type daemon struct {
	*exec.Cmd
	log    *text
	done   chan struct{}
	killed bool
}

// start runs a program in a directory of its own until the test ends.
func (r *rig) start(name string, args ...string) *daemon {
	r.t.Helper()
	d := &daemon{Cmd: exec.Command(program(r.t, name), args...), log: &text{}, done: make(chan struct{})}
	d.Dir, d.Stdout, d.Stderr = r.own("run-"+name), d.log, d.log
	d.Env = slices.Concat(os.Environ(), r.env)
	if err := d.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() {
		_ = d.Wait() // the exit code says it
		close(d.done)
	}()
	r.daemons = append(r.daemons, d)
	return d
}

// crew starts a server, waits until it has published its settings, and starts a worker.
func (r *rig) crew() (server, worker *daemon) {
	r.t.Helper()
	server = r.start("tdf-server", "s", r.config("server"))
	wait.Eventually(r.t, patience, func() bool {
		select {
		case <-server.done:
			r.t.Fatalf("the server ended:\n%s", server.log)
		default:
		}
		return r.srv.Do(r.t, "HGET", r.ns+":meta", "server_seen") != nil
	}, "no server has begun")
	return server, r.start("tdf-worker", "w", r.config("worker"))
}

func (r *rig) stopAll() {
	for _, d := range r.daemons {
		_ = d.Process.Signal(syscall.SIGTERM) // those that have ended do not mind
	}
	for _, d := range r.daemons {
		select {
		case <-d.done:
		case <-time.After(patience):
			r.t.Errorf("%v does not stop", d.Args)
			_ = d.Process.Kill()
			<-d.done
		}
		if code := d.ProcessState.ExitCode(); code != 0 && !d.killed {
			r.t.Errorf("%v ended with %d", d.Args, code)
		}
		if r.t.Failed() {
			r.t.Logf("%v wrote at last:\n%s", d.Args, tail(d.log.String()))
		}
	}
}

// kill ends a program with SIGKILL.
func (d *daemon) kill() {
	d.killed = true
	_ = d.Process.Kill()
	<-d.done
}

// result is what a run of tdf-manager left.
type result struct {
	code     int
	out, err string
}

// verb runs tdf-manager with the configuration of a role.
func (r *rig) verb(role string, args ...string) result {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(r.t, "tdf-manager"), append([]string{"--config", r.config(role)}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.Env = &out, &errs, r.dir, slices.Concat(os.Environ(), r.env)
	_ = cmd.Run() // the exit code says it
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
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

// becomes waits until a task is in a state.
func (r *rig) becomes(id, state string) {
	r.t.Helper()
	var last any
	wait.Eventually(r.t, patience, func() bool {
		last = r.srv.Do(r.t, "HGET", r.ns+":task:"+id, "state")
		return last == state
	}, "task %s is not %s, but %v", id, state, &last)
}

// tail is the end of a log.
func tail(log string) string { return log[max(0, len(log)-1500):] }
