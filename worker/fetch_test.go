package worker

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// fakePrograms is a fetcher that does what the test says.
type fakePrograms func(ctx context.Context, note func(string)) (fetch.Version, error)

func (f fakePrograms) Ensure(ctx context.Context, _, _ string, note func(string)) (fetch.Version, error) {
	return f(ctx, note)
}

// A panic is the round's error.
func TestPanic(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.open(t)
	w := s.start(t, func(o *options) {
		o.Programs = fakePrograms(func(context.Context, func(string)) (fetch.Version, error) { panic("ouch") })
	})
	task := s.settle(t, id, sm.Failed)
	checkFields(t, task, map[string]string{"0:error": "internal error of worker 'w': ouch"})
	w.log.await(t, "panic while executing task 1: ouch")
}

// The fetch counts against the timeout, its lines are in the log while it
// goes on, and a stop ends it.
func TestFetchIsPartOfTheRound(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context, note func(string)) (fetch.Version, error) {
		note("attempting to fetch")
		<-ctx.Done()
		return fetch.Version{}, ctx.Err()
	}
	t.Run("timeout", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		id := s.open(t, limits("1", "0"))
		s.start(t, func(o *options) { o.Programs = fakePrograms(hang) })
		wait.Eventually(t, patience, func() bool {
			task := s.Task(t, id)
			return task.State == sm.Running && strings.Contains(task.Fields["log"], "attempting to fetch")
		}, "the fetch cannot be watched")
		task := s.await(t, id, sm.TimedOut)
		checkContains(t, "error", task.Fields["0:error"], "TERMINATED - execution timed out...")
		if n := strings.Count(task.Fields["log"], "attempting to fetch"); n != 1 {
			t.Errorf("the line is there %d times:\n%s", n, task.Fields["log"])
		}
	})
	t.Run("stop", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		id := s.open(t)
		w := s.start(t, func(o *options) { o.Programs = fakePrograms(hang) })
		s.await(t, id, sm.Running)
		w.log.await(t, "attempting to fetch")
		w.stop(t)
		checkFields(t, s.Task(t, id), map[string]string{"state": "open", "releases": "1", "0:error": "-"})
	})
}

// Lines that cannot be written at once go along with the report.
func TestNotesWaitForRedis(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.script(t, "p", "echo ran")
	proxy, st := s.behindProxy(t)
	id := s.open(t)
	s.startOn(t, st, func(o *options) {
		o.Programs = fakePrograms(func(_ context.Context, note func(string)) (fetch.Version, error) {
			proxy.Down()
			note("one")
			note("two")
			proxy.Up()
			return fetch.Version{Dir: filepath.Join(s.sources, "p")}, nil
		})
	})
	task := s.await(t, id, sm.Executed)
	checkLines(t, task.Fields["log"], "w          moving task 1: open -> running", "w          executing task 1: p 1 2",
		"w          one", "w          two", "w          moving task 1: running -> executed", "w          moving task 1: executed -> succeeded")
}

// A32, A33, A34, A39: what cannot be fetched is the round's error.
func TestFetchFailures(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	bad := t.TempDir()
	file := filepath.Join(bad, "run.sh")
	if err := os.WriteFile(filepath.Join(bad, "x.zip"), []byte("no zip"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[int64]string{}
	open := func(want, program, source string) {
		id := s.open(t, func(sp *task.Definition) { storetest.Set(sp, "program", "p", "source", source) })
		if program != "p" { // as a stranger would write it
			key := s.Key("task:" + strconv.FormatInt(id, 10))
			if err := s.Raw.HSet(t.Context(), key, "program", program).Err(); err != nil {
				t.Fatal(err)
			}
		}
		cases[id] = want
	}
	open("invalid type of archive", "p", "rsync:x.wrongExtension")
	open("could not fetch program 'p' at worker 'w': ", "p", "rsync:/no/such/path.zip")
	open("could not fetch program 'p' at worker 'w': ", "p", "rsync:"+filepath.Join(bad, "x.zip"))
	for _, program := range []string{"../x", "/abs", "a/../../b", "", "a\nb", ".tdf"} {
		open("invalid program name", program, "rsync:"+file)
	}
	s.start(t)
	for id, want := range cases {
		task := s.settle(t, id, sm.Failed)
		checkContains(t, "error of task "+strconv.FormatInt(id, 10), task.Fields["0:error"], want)
		checkContains(t, "log", task.Fields["log"], "could not fetch program '")
		checkFields(t, task, map[string]string{"0:exit_code": "-", "fails": "1"})
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(s.programs), "x*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A name that is a path is refused whatever Programs thinks of it, because it
// becomes part of file names.
func TestProgramNameIsChecked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.script(t, "p", "echo ran")
	id := s.open(t)
	if err := s.Raw.HSet(t.Context(), s.Key("task:1"), "program", "../../p").Err(); err != nil {
		t.Fatal(err)
	}
	s.start(t, func(o *options) {
		o.OutputFile = filepath.Join(s.programs, "$program.out")
		o.Programs = fakePrograms(func(context.Context, func(string)) (fetch.Version, error) {
			return fetch.Version{Dir: filepath.Join(s.sources, "p")}, nil
		})
	})
	task := s.await(t, id, sm.Executed)
	checkContains(t, "error", task.Fields["0:error"], "invalid program name")
	checkFields(t, task, map[string]string{"0:output": ""})
}

// A35: a program is fetched once.
func TestProgramIsFetchedOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.script(t, "p", "true")
	first, second := s.open(t, p), s.open(t, p)
	s.start(t)
	s.await(t, first, sm.Executed)
	task := s.await(t, second, sm.Executed)
	checkLines(t, task.Fields["log"], "w          moving task 2: open -> running",
		"w          executing task 2: p 1 2", "w          moving task 2: running -> executed",
		"w          moving task 2: executed -> succeeded")
}
