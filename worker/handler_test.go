package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// handlers makes a worker of handlers only.
func handlers(of map[string]Handler) func(*options) {
	return func(o *options) { o.Handlers, o.Programs, o.container = of, nil, nil }
}

func forHandler(name string) func(*task.Definition) {
	return func(s *task.Definition) {
		storetest.Set(s, "program", name, "class", name, "source", "", "input", "1 2 3")
	}
}

// A Go function does tasks through the same claims, records and rules as a
// program.
func TestHandlers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(t, handlers(map[string]Handler{
		"echo": func(_ context.Context, j *Job) error {
			fmt.Fprintln(j.Stdout(), j.Task.ID, j.Task.Round, j.Task.Program, j.Task.Input, len(j.Args))
			return nil
		},
		"fail":  func(context.Context, *Job) error { return errors.New("it broke") },
		"panic": func(context.Context, *Job) error { panic("oh") },
		"warn": func(_ context.Context, j *Job) error {
			fmt.Fprintln(j.Stderr(), "careful")
			return nil
		},
	}))
	for name, want := range map[string]map[string]string{
		"echo":  {"0:output": "*", "0:error": "", "0:worker": "w", "0:trace": "-"},
		"fail":  {"0:output": "", "0:error": "it broke", "0:trace": "-"},
		"panic": {"0:error": "the handler of 'panic' panicked: oh", "0:trace": "*"},
		"warn":  {"0:error": "careful\n"},
	} {
		task := s.await(t, s.open(t, forHandler(name)), sm.Executed)
		checkFields(t, task, want)
		if name == "echo" {
			checkFields(t, task, map[string]string{"0:output": fmt.Sprintf("%d 0 echo 1 2 3 3\n", task.ID)})
		}
	}
}

// The stack of a panic stands in the record, from where it happened on.
func TestTrace(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	w := s.start(t, handlers(map[string]Handler{"deep": func(context.Context, *Job) error { return sink(1000) }}))
	found, err := s.Store.Task(t.Context(), s.await(t, s.open(t, forHandler("deep")), sm.Executed).ID)
	if err != nil {
		t.Fatal(err)
	}
	stack := task.Decode(found.ID, found.Fields).Rounds[0].Trace
	if len(stack) > longestTrace || !strings.HasPrefix(stack, "github.com/tdf-go/tdf/worker.sink(") || !strings.HasSuffix(stack, "\n") {
		t.Errorf("%d bytes: %s", len(stack), stack)
	}
	w.log.await(t, "runtime/debug.Stack")
	if got := trace([]byte("no panic\n")); got != "no panic\n" {
		t.Error(got)
	}
}

func sink(depth int) error {
	if depth == 0 {
		panic("too deep")
	}
	return errors.Join(sink(depth-1), errors.ErrUnsupported)
}

// A worker with only handlers never claims a task of another class, or of none: what
// it is there for does not wait behind such tasks.
func TestHandlersOnly(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const others = 20
	var theirs []int64
	for i := range others {
		class := []string{"", "other"}[i%2]
		theirs = append(theirs, s.open(t, forHandler("other"), func(d *task.Definition) { storetest.Set(d, "class", class) }))
	}
	s.start(t, func(o *options) { o.Slots = 4 }, handlers(map[string]Handler{"echo": func(context.Context, *Job) error { return nil }}))
	for range 8 {
		checkFields(t, s.await(t, s.open(t, forHandler("echo")), sm.Executed), map[string]string{"round": "0", "0:error": "", "0:worker": "w"})
	}
	for _, id := range theirs {
		checkFields(t, s.Task(t, id), map[string]string{"state": "open", "round": "0", "rev": "-", "releases": "-", "0:running": "-", "0:worker": "-"})
	}
	if w := s.worker(t); !w.HandlersOnly || len(w.Queues) != 1 || w.Queues[0].Queue != task.DefaultQueue {
		t.Errorf("registered %+v, want handlers only, in the default queue", w)
	}
}

// A worker that runs programs too takes what has no class, and what has one of its own.
func TestHandlersAndPrograms(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	away := s.open(t, s.script(t, "p", "true"), func(d *task.Definition) { storetest.Set(d, "class", "other") })
	s.start(t, func(o *options) {
		o.Handlers = map[string]Handler{"echo": func(context.Context, *Job) error { return nil }}
	})
	for _, id := range []int64{s.open(t, s.script(t, "p", "true")), s.open(t, forHandler("echo"))} {
		checkFields(t, s.await(t, id, sm.Executed), map[string]string{"0:error": "", "0:worker": "w"})
	}
	checkFields(t, s.Task(t, away), map[string]string{"state": "open", "0:worker": "-"})
	if s.worker(t).HandlersOnly {
		t.Error("registered as one that runs no programs")
	}
}

// A task of its class that this worker has no handler for is left to others, and costs
// nothing.
func TestTaskForOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.open(t, forHandler("other"), func(d *task.Definition) { storetest.Set(d, "class", "echo") })
	w := s.start(t, handlers(map[string]Handler{"echo": func(context.Context, *Job) error { return nil }}))
	w.log.await(t, "leaving the task to other workers")
	checkFields(t, s.Task(t, id), map[string]string{"state": "open", "releases": "1", "fails": "0", "0:error": "-", "0:class": "handler"})
	s.start(t, func(o *options) {
		o.Name, o.Classes, o.Programs = "programs", []string{"echo"}, fakePrograms(func(context.Context, func(string)) (fetch.Version, error) {
			return fetch.Version{}, errors.New("fetched by another")
		})
	})
	checkFields(t, s.await(t, id, sm.Executed), map[string]string{"1:worker": "programs", "1:error": "fetched by another"})
}

// A handler is cancelled at its timeout. One that does not obey makes its slot
// stuck, which the registry shows, and what it returns later is not reported.
func TestStuckHandler(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	release := make(chan struct{})
	returned := make(chan struct{})
	w := s.start(t, func(o *options) { o.Slots, o.KillGrace = 2, 50*time.Millisecond }, handlers(map[string]Handler{
		"obeys": func(ctx context.Context, _ *Job) error { <-ctx.Done(); return ctx.Err() },
		"stuck": func(_ context.Context, j *Job) error {
			defer close(returned)
			<-release
			fmt.Fprintln(j.Stdout(), "late")
			return nil
		},
		"quick": func(context.Context, *Job) error { return nil },
	}))
	checkFields(t, s.await(t, s.open(t, forHandler("obeys"), limits("1", "0")), sm.TimedOut), map[string]string{
		"0:error": "TERMINATED - execution timed out...",
	})
	id := s.open(t, forHandler("stuck"), limits("1", "0"))
	task := s.await(t, id, sm.TimedOut)
	checkContains(t, "error", task.Fields["0:error"], "did not return within 50ms")
	wait.Eventually(t, patience, func() bool { return s.worker(t).Stuck == 1 }, "the registry does not show it")
	for range 3 {
		s.await(t, s.open(t, forHandler("quick")), sm.Executed) // in the other slot
	}
	close(release)
	wait.Closed(t, patience, returned, "it does not return")
	w.log.await(t, "the slot is free again")
	wait.Eventually(t, patience, func() bool { return s.worker(t).Stuck == 0 }, "the registry still shows it")
	after := s.Task(t, id)
	checkFields(t, after, map[string]string{"state": "timed_out", "0:output": ""})
}

// What a handler says of its progress is recorded while it runs.
func TestHandlerProgress(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	release := make(chan struct{})
	s.start(t, handlers(map[string]Handler{"p": func(_ context.Context, j *Job) error {
		j.Progress(0.4, "halfway")
		<-release
		return nil
	}}))
	id := s.open(t, forHandler("p"))
	wait.Eventually(t, patience, func() bool { return s.Task(t, id).Fields["0:progress"] == "0.4 halfway" }, "no progress")
	close(release)
	s.await(t, id, sm.Executed)
}

// What a handler sets of its attributes is recorded while it runs, and at the latest with its report.
func TestHandlerAttributes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	release := make(chan struct{})
	s.start(t, handlers(map[string]Handler{"p": func(_ context.Context, j *Job) error {
		err := errors.Join(j.SetMeta("phase", "load"), j.SetMeta("owner", ""))
		<-release
		if j.SetMeta("No", "x") == nil || j.Said().Meta["phase"] != "load" {
			return errors.New("no error")
		}
		return errors.Join(err, j.SetMeta("last", "1"))
	}}))
	id := s.open(t, forHandler("p"), func(sp *task.Definition) { storetest.Set(sp, "meta", `{"owner":"ann","tenant":"acme"}`) })
	wait.Eventually(t, patience, func() bool { return s.Task(t, id).Fields["meta"] == `{"phase":"load","tenant":"acme"}` }, "no attribute")
	close(release)
	checkFields(t, s.await(t, id, sm.Executed), map[string]string{"meta": `{"last":"1","phase":"load","tenant":"acme"}`, "0:error": ""})
}

// exit is an error with an exit code.
type exit int

func (e exit) Error() string { return "it gave up" }
func (e exit) ExitCode() int { return int(e) }

// The exit code of a handler's error is that of the round: the task is run again, or
// not, as it says. One that no program could have is none.
func TestHandlerExitCode(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	codes := map[string]int{"fatal": 65, "other": 64, "none": 256}
	of := map[string]Handler{}
	for name, code := range codes {
		of[name] = func(context.Context, *Job) error { return fmt.Errorf("%s: %w", name, exit(code)) }
	}
	s.start(t, handlers(of))
	for name, want := range map[string]map[string]string{
		"fatal": {"round": "0", "0:exit_code": "65", "0:error": "fatal: it gave up", "0:class": "program"},
		"other": {"round": "1", "1:exit_code": "64", "1:error": "other: it gave up"},
		"none":  {"round": "1", "1:exit_code": "-", "1:error": "none: it gave up"},
	} {
		id := s.open(t, forHandler(name), func(sp *task.Definition) { storetest.Set(sp, "max_fails", "1", "fatal_exit_codes", "65") })
		checkFields(t, s.finish(t, id, sm.Failed), want)
	}
}
