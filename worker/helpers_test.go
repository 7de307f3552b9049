package worker

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/sandbox/shim"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

func TestMain(m *testing.M) {
	conn.Silence()
	redistest.Main(m)
}

const patience = 15 * time.Second

// site is where a test works: a namespace, a directory of sources, one of programs.
type site struct {
	*storetest.Space
	sources, programs string
}

func newSite(t testing.TB) *site {
	t.Helper()
	return siteOn(t, storetest.New(t))
}

func siteOn(t testing.TB, sp *storetest.Space) *site {
	t.Helper()
	return &site{Space: sp, sources: t.TempDir(), programs: t.TempDir()}
}

// within checks what Redis' clock says of two moments, see [wait.Within].
func within(t *testing.T, what string, from, to statemachine.Time, most time.Duration) {
	t.Helper()
	wait.Within(t, what, time.UnixMicro(int64(from)), time.UnixMicro(int64(to)), most)
}

// script writes a program and returns a change of a task that makes it run it.
func (s *site) script(t testing.TB, name, text string) func(*task.Definition) {
	t.Helper()
	dir := filepath.Join(s.sources, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "run.sh")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return func(sp *task.Definition) { storetest.Set(sp, "program", name, "source", "rsync:"+file) }
}

// open opens one task.
func (s *site) open(t *testing.T, change ...func(*task.Definition)) int64 {
	t.Helper()
	return s.Open(t, storetest.Spec(change...))[0]
}

// setting makes a change of the options out of settings of [worker], each key=value.
func setting(tb testing.TB, settings ...string) func(*options) {
	tb.Helper()
	for i, s := range settings {
		settings[i] = "worker." + s
	}
	change := storetest.Setting(tb, func(c *config.File) Settings { return complete(Options{}, c.Worker).Settings }, settings...)
	return func(o *options) { change(&o.Settings) }
}

// options are those of a worker named w with a silent fetcher of its own.
func (s *site) options(tb testing.TB, st *store.Store) options {
	tb.Helper()
	fo := fetch.DefaultOptions()
	fo.Dir, fo.Worker, fo.FailureBackoff = s.programs, "w", 0
	fetcher, err := fetch.New(fo)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = fetcher.Close() })
	o := complete(Options{}, config.Defaults().Worker)
	o.Name, o.Backend, o.Programs, o.TempDir = "w", st, fetcher, tb.TempDir()
	o.KillGrace, o.DrainTimeout, o.stopTimeout = time.Second, 0, 3*time.Second
	o.Slots, o.container, o.ProgramDir = 1, container(tb), s.programs
	o.SpoolDir, o.DiskReserve = tb.TempDir(), 0
	o.SleepInitial = 3 * time.Second // what is to be woken does not find its task by itself before
	return o
}

// containers counts what container made: each has a name of its own, because a
// worker kills at its start what others of its name have left.
var containers atomic.Int64

// container contains programs by their descent, so that the process ids they say
// are those of the host. Package shim tests the other ways.
func container(tb testing.TB) *shim.Container {
	tb.Helper()
	c, err := shim.New(shim.Options{Want: shim.Group, Name: fmt.Sprintf("%d/%d", os.Getpid(), containers.Add(1))})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// newLogger writes all there is to say, for people and for tests.
func newLogger(l *logs) *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// running is a worker at work.
type running struct {
	*Worker
	log    *logs
	cancel context.CancelFunc
	done   chan error
}

// start runs a worker until the test ends or stop is called.
func (s *site) start(t *testing.T, change ...func(*options)) *running {
	t.Helper()
	return s.startOn(t, s.Dial(t), change...)
}

func (s *site) startOn(t testing.TB, st *store.Store, change ...func(*options)) *running {
	t.Helper()
	l := &logs{}
	o := s.options(t, st)
	o.Logger = newLogger(l)
	for _, f := range change {
		f(&o)
	}
	o.Backend = s.backend(t, o.Name, o.Backend)
	w, err := assemble(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{Worker: w, log: l, cancel: cancel, done: make(chan error, 1)}
	go func() {
		defer close(r.done)
		r.done <- w.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		for err := range r.done {
			if err != nil {
				t.Errorf("worker: %v", err)
			}
		}
		if t.Failed() {
			t.Logf("log of worker %s:\n%s", o.Name, l)
			if task, err := s.Store.Task(context.WithoutCancel(t.Context()), 1); err == nil {
				t.Logf("task 1: %v", task.Fields)
			}
		}
	})
	return r
}

// stop cancels the worker and waits for its end.
func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	if err := wait.Receive(t, patience, r.done, "the worker does not stop"); err != nil {
		t.Errorf("worker: %v", err)
	}
}

// await waits until the task is in one of the states, and reads it. Executed is also what went on from there
// because its worker has settled it.
func (s *site) await(t testing.TB, id int64, states ...statemachine.State) *tasks.TaskHeader {
	t.Helper()
	var task *tasks.TaskHeader
	wait.Eventually(t, patience, func() bool {
		var err error
		task, err = s.Store.Task(t.Context(), id)
		settled := err == nil && task.State == statemachine.Succeeded && slices.Contains(states, statemachine.Executed)
		return settled || err == nil && slices.Contains(states, task.State)
	}, "task %d is not %v", id, states)
	return task
}

// settle does the work of a server until the task is in one of the states.
func (s *site) settle(t *testing.T, id int64, states ...statemachine.State) *tasks.TaskHeader {
	t.Helper()
	var task *tasks.TaskHeader
	wait.Eventually(t, patience, func() bool {
		s.serve(t)
		task = s.Task(t, id)
		return slices.Contains(states, task.State)
	}, "task %d is not %v", id, states)
	return task
}

// serve is one pass of a server.
func (s *site) serve(t *testing.T) {
	t.Helper()
	executed, err := s.Store.Listed(t.Context(), statemachine.Executed, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i := range executed.Tasks {
		s.decide(t, &executed.Tasks[i], statemachine.Settle, executed.Now)
	}
	due, err := s.Store.Due(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for i := range due.Tasks {
		s.decide(t, &due.Tasks[i], statemachine.Deadline, due.Now)
	}
}

// decide makes a server's move, if it is due.
func (s *site) decide(t *testing.T, task *tasks.TaskHeader, event statemachine.Event, now statemachine.Time) bool {
	t.Helper()
	move, err := statemachine.Decide(&task.Task, statemachine.Occurrence{
		Event: event, Actor: statemachine.Server, Grace: tasks.DefaultGrace * statemachine.Second,
	}, now)
	if err != nil {
		return false
	}
	out, err := s.Store.Apply(t.Context(), tasks.Commit{Move: move, Writer: "server", Bucket: task.Bucket})
	if err != nil {
		t.Fatal(err)
	}
	return out[0].Err == nil
}

// takeBack re-opens a running task as a server does that finds it overdue.
func (s *site) takeBack(t *testing.T, id int64) {
	t.Helper()
	task := s.Task(t, id)
	if !s.decide(t, task, statemachine.Deadline, statemachine.Never-1) {
		t.Fatalf("task %d cannot be taken back: %+v", id, task.Task)
	}
}

func checkFields(t *testing.T, task *tasks.TaskHeader, want map[string]string) {
	t.Helper()
	for name, value := range want {
		got, ok := task.Fields[name]
		switch {
		case value == "-" && ok, value == "*" && !ok, value != "-" && value != "*" && got != value:
			t.Errorf("task %d: %s = %q (there: %v), want %q", task.ID, name, got, ok, value)
		}
	}
}

func checkContains(t *testing.T, what, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%s lacks %q:\n%s", what, w, got)
		}
	}
}

// awaitFile waits until a program has made the file, and reads it.
func awaitFile(t *testing.T, name string) string {
	t.Helper()
	var text []byte
	wait.Eventually(t, patience, func() bool {
		var err error
		text, err = os.ReadFile(name)
		return err == nil && len(text) > 0
	}, "file %s is not made", name)
	return string(text)
}

func touch(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// logs gathers what a worker logs.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logs) count(text string) int { return strings.Count(l.String(), text) }

func (l *logs) await(t *testing.T, text string) {
	t.Helper()
	wait.Eventually(t, patience, func() bool { return l.count(text) > 0 }, "the log lacks %q", text)
}
