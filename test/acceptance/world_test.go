package acceptance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf"
	"github.com/tdf-go/tdf/internal/ops/audit"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/daemontest"
	"github.com/tdf-go/tdf/internal/testkit/hosttest"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/manager"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

const patience = 30 * time.Second

// world is a namespace with a configuration that all programs share, and a
// directory in which each of them has one of its own.
type world struct {
	*storetest.Space
	dir, cfg string
	private  string   // where workers make the private directories of rounds
	environ  []string // of all programs that are started
	daemons  []*daemon
}

const settings = `[redis]
host=%s
port=%d
username=%s
password=%s
[tdf]
namespace=%s
[server]
round_duration=0.5
timeout_grace=0.5
repair_interval=0.2
[worker]
kill_grace=0.2
temp_dir=%s
%s
[manager]
round_duration=0.5
[task_defaults]
`

// newWorld makes a world on the shared Redis, with further lines of [worker].
// The programs use a Redis user who may touch nothing but the namespace.
func newWorld(t *testing.T, lines ...string) *world {
	t.Helper()
	return worldOn(t, storetest.New(t), lines...)
}

func worldOn(t *testing.T, sp *storetest.Space, lines ...string) *world {
	t.Helper()
	w := &world{Space: sp, dir: t.TempDir()}
	allow(t, filepath.Dir(w.dir), 0o755) // others than root take part
	w.private = w.own(t, "private")
	allow(t, w.private, 0o777)
	w.cfg = w.file(t, "tdf.cfg", fmt.Sprintf(settings, sp.Where.Host, cmp.Or(sp.Where.Port, 6379), sp.Where.Username,
		sp.Where.Password, sp.Namespace, w.private, strings.Join(lines, "\n")), 0o600)
	t.Cleanup(func() { daemontest.Stop(t, w.daemons) })
	return w
}

// allow changes the mode of a file, whatever the umask says.
func allow(t *testing.T, name string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

// file writes a file of the world's directory, at once as far as a worker that fetches it sees, and returns its path.
func (w *world) file(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(t.TempDir(), "file")
	err := os.WriteFile(whole, []byte(text), mode)
	if err == nil {
		err = os.Rename(whole, path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// own makes the working directory of a program.
func (w *world) own(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(w.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (w *world) server(t *testing.T) *daemon {
	t.Helper()
	return w.launch(t, "server", "tdf-server", "server", w.cfg)
}

// worker starts a worker, with further settings of [worker].
func (w *world) worker(t *testing.T, name string, set ...string) *daemon {
	t.Helper()
	return w.launch(t, name, "tdf-worker", w.workerArgs(name, set...)...)
}

func (w *world) workerArgs(name string, set ...string) []string {
	args := []string{name, w.cfg}
	for _, s := range set {
		args = append(args, "--set", "worker."+s)
	}
	return args
}

// archiver runs tdf-manager run, which archives whatever ends.
func (w *world) archiver(t *testing.T) *daemon {
	t.Helper()
	return w.launch(t, "manager", "tdf-manager", "--config", w.cfg, "run")
}

// all starts a server, the manager and a worker w.
func (w *world) all(t *testing.T) (server, worker, archiver *daemon) {
	t.Helper()
	return w.server(t), w.worker(t, "w"), w.archiver(t)
}

// script writes a program and returns a task that runs it.
func (w *world) script(t *testing.T, name, body string) task.Spec {
	t.Helper()
	file := w.file(t, filepath.Join("sources", name, "run.sh"), "#!/bin/sh\n"+body+"\n", 0o755)
	return task.Spec{Program: name, Source: "rsync:" + file}
}

// connect makes a silent site of a configuration file.
func connect(ctx context.Context, file string) (*tdf.Site, error) {
	c, err := tdf.Load(file)
	if err != nil {
		return nil, err
	}
	c.Logger = slog.New(slog.DiscardHandler)
	return tdf.Connect(ctx, c)
}

// open opens tasks as a project does.
func (w *world) open(t *testing.T, specs ...task.Spec) []int64 {
	t.Helper()
	site, err := connect(t.Context(), w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = site.Close() }()
	opened, err := manager.New(site, "opener", manager.Options{}).SubmitAll(t.Context(), slices.Values(specs))
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]int64, len(opened))
	for i, o := range opened {
		ids[i] = o.ID
	}
	return ids
}

// await waits until the task is in the state, and reads it. Executed is also what went on from there because its worker
// has settled it, and an outcome what was archived with it.
func (w *world) await(t *testing.T, id int64, state sm.State) *tasks.TaskHeader {
	t.Helper()
	wait.Eventually(t, patience, func() bool {
		is, err := w.Store.Task(t.Context(), id)
		return err == nil && (is.State == state || state == sm.Executed && is.State == sm.Succeeded || state.IsOutcome() && is.Outcome == state)
	}, "task %d is not %s but %s",
		id, state, late(func() string { return fmt.Sprint(w.state(t, id)) }))
	return w.Task(t, id)
}

func (w *world) state(t *testing.T, id int64) sm.State {
	t.Helper()
	task, err := w.Store.Task(t.Context(), id)
	if err != nil {
		return sm.State(err.Error())
	}
	return task.State
}

// archived waits until the task is archived after the given end.
func (w *world) archived(t *testing.T, id int64, outcome sm.State) *tasks.TaskHeader {
	t.Helper()
	task := w.await(t, id, sm.Archived)
	if task.Outcome != outcome {
		t.Errorf("task %d has ended %s, want %s: error %q", id, task.Outcome, outcome, last(task, "error"))
	}
	if in := w.Sets(t, id); len(in) != 1 || in[0] != sm.Archived {
		t.Errorf("task %d is listed in %v, want archived only", id, in)
	}
	return task
}

// hash reads a task as a stranger does.
func (w *world) hash(t *testing.T, id int64) map[string]string {
	t.Helper()
	fields, err := w.Raw.HGetAll(t.Context(), w.Key("task:"+strconv.FormatInt(id, 10))).Result()
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// sound runs the audit over the whole namespace, and returns how much that finds.
func (w *world) sound(t *testing.T) (findings int) {
	t.Helper()
	report, err := audit.Verify(t.Context(), w.Store)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Violations {
		t.Errorf("verify: %+v", v)
	}
	return len(report.Violations)
}

// lastTask is the highest id of a task so far.
func (w *world) lastTask(t *testing.T) int64 {
	t.Helper()
	id, err := w.Raw.Get(t.Context(), w.Key("task_id")).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return id
}

// running are the processes of programs of this namespace, wherever they went.
func (w *world) running() []int { return hosttest.ProcessesWith("TDF_NAMESPACE=" + w.Namespace) }

// redisNow is the time on Redis' clock.
func (w *world) redisNow(t *testing.T) sm.Time {
	t.Helper()
	now, err := w.Store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// at is a time of a task as the package manager takes it.
func at(when sm.Time) time.Time { return time.UnixMicro(int64(when)) }

// appendOnly is a Redis of the test's own that survives being killed.
func appendOnly(t *testing.T) *storetest.Space {
	t.Helper()
	sp := storetest.On(t, redistest.Start(t, redistest.WithAppendOnly()))
	sp.Where = storetest.Where(sp.Server) // users do not survive a restart
	sp.Store = sp.Dial(t)
	return sp
}
