package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tdf-go/tdf/fetch"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// apart makes a worker of its own name with a directory of its own, whose fetcher reads uploads from Redis.
func apart(t *testing.T, st *store.Store, name, dir string) func(*options) {
	t.Helper()
	fo := fetch.DefaultOptions()
	fo.Dir, fo.Worker, fo.Blob = dir, name, st.Blob
	f, err := fetch.New(fo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return func(o *options) { o.Name, o.Programs, o.ProgramDir = name, f, dir }
}

// pinnedScript is a script and a change of a task that pins it.
func (s *site) pinnedScript(t *testing.T, name, text string) (change func(*task.Definition), file, hash string) {
	t.Helper()
	s.script(t, name, text)
	file = filepath.Join(s.sources, name, "run.sh")
	sum := sha256.Sum256([]byte("#!/bin/sh\n" + text))
	hash = hex.EncodeToString(sum[:])
	return func(d *task.Definition) {
		storetest.Set(d, "program", name, "source", "rsync:"+file+task.Pin(hash), "max_faults", "0")
	}, file, hash
}

// A worker that cannot have a pinned version any more leaves its tasks to one that keeps it, however long that is busy, and goes on
// with others.
func TestGoneIsLeftToKeepers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pinned, file, hash := s.pinnedScript(t, "p", "echo first")
	s.start(t, apart(t, s.Dial(t), "has", t.TempDir()))
	s.await(t, s.open(t, pinned), sm.Executed)
	dir := t.TempDir()
	slow := s.script(t, "slow", "echo > "+dir+"/up; while [ ! -e "+dir+"/go ]; do sleep 0.01; done")
	busy := s.open(t, slow)
	s.await(t, busy, sm.Running)
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho second"), 0o755); err != nil {
		t.Fatal(err)
	}
	lacks := s.start(t, apart(t, s.Dial(t), "lacks", t.TempDir()))
	many := make([]int64, 20) // more than are passed over of what has failed
	for i := range many {
		many[i] = s.open(t, pinned)
	}
	other := s.await(t, s.open(t, s.script(t, "other", "echo other")), sm.Executed)
	checkFields(t, other, map[string]string{"0:worker": "lacks"})
	for _, id := range many {
		turned := s.Task(t, id)
		checkFields(t, turned, map[string]string{"state": "open", "round": "1", "releases": "1", "0:worker": "lacks", "0:class": "fetch"})
		if till, to, _ := strings.Cut(turned.Fields["avoid"], " "); to != "/has/" || till == "" {
			t.Errorf("task %d is left to %q", id, turned.Fields["avoid"])
		}
		checkContains(t, "log", turned.Fields["log"], "version p@"+hash+" is left to workers that keep it, has")
	}
	touch(t, filepath.Join(dir, "go"))
	for _, id := range many {
		done := s.await(t, id, sm.Executed)
		checkFields(t, done, map[string]string{"1:worker": "has", "1:output": "first\n", "1:program_sha256": hash})
	}
	if n := lacks.log.count("handing back task"); n != len(many) {
		t.Errorf("it hands back %d times", n)
	}
}

// What no worker keeps waits a while, reckoned from the record, and then fails by name; other versions are never run.
func TestGoneForGood(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pinned, file, hash := s.pinnedScript(t, "p", "echo first")
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho second"), 0o755); err != nil {
		t.Fatal(err)
	}
	brief := func(o *options) { o.goneWait = 2 * time.Second }
	id := s.open(t, pinned)
	s.start(t, apart(t, s.Dial(t), "w1", t.TempDir()), brief)
	alone := s.settle(t, id, sm.Failed) // nobody could have it
	checkFields(t, alone, map[string]string{"0:class": "fetch", "releases": "-", "avoid": "-"})
	checkContains(t, "error", alone.Fields["0:error"], "checksum mismatch", "'p'")
	checkContains(t, "what is shown of it", fmt.Sprintf("%.180s", alone.Fields["0:error"]), "no other worker has version p@"+hash, "--pin", "--upload", "put that version back")
	s.start(t, apart(t, s.Dial(t), "w2", t.TempDir()), brief)
	wait.Eventually(t, patience, func() bool {
		all, _, err := s.Store.Workers(t.Context())
		return err == nil && len(all) == 2
	}, "the second worker is not registered")
	id = s.open(t, pinned)
	wait.Eventually(t, patience, func() bool { return strings.HasSuffix(s.Task(t, id).Fields["avoid"], " /") }, "it does not wait")
	turned := s.Task(t, id)
	checkContains(t, "log", turned.Fields["log"], "no worker has version p@"+hash)
	if turned.NotBefore == 0 || turned.Releases != 1 {
		t.Errorf("it does not rest: %+v", turned.Task)
	}
	late := s.settle(t, id, sm.Failed)
	last := sm.RoundField(late.Round, "class")
	checkFields(t, late, map[string]string{last: "fetch", "avoid": turned.Fields["avoid"]})
	if late.Releases > 3 {
		t.Errorf("it was handed back %d times", late.Releases)
	}
}

// Where the source cannot be asked nothing says that the version is gone: the round fails, as it did.
func TestUnreachableIsNotGone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.open(t, func(d *task.Definition) {
		storetest.Set(d, "program", "p", "source", "http://127.0.0.1:1/p.tar"+task.Pin(strings.Repeat("0a", 32)), "max_faults", "0")
	})
	asked := false
	s.start(t, apart(t, s.Dial(t), "w1", t.TempDir()), func(o *options) { o.Backend = &curious{o.Backend, &asked} })
	failed := s.settle(t, id, sm.Failed)
	if checkFields(t, failed, map[string]string{"0:class": "fetch", "avoid": "-"}); asked {
		t.Error("others are asked")
	}
}

// curious notes whether the other workers were asked.
type curious struct {
	Backend

	asked *bool
}

func (c *curious) Keepers(ctx context.Context, worker string, b task.Bucket, version string) ([]string, int, error) {
	*c.asked = true
	return c.Backend.Keepers(ctx, worker, b, version)
}

// A worker that says that it keeps a version which it lacks as well, as one whose files somebody has removed, does not get the task back
// and forth with another.
func TestKeepersThatLack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id := s.open(t, func(d *task.Definition) {
		storetest.Set(d, "program", "p", "source", "rsync:"+filepath.Join(s.sources, "none.zip")+task.Pin(strings.Repeat("0a", 32)))
	})
	for _, name := range []string{"w1", "w2"} {
		s.start(t, apart(t, s.Dial(t), name, t.TempDir()), func(o *options) { o.Backend = &boasting{o.Backend} })
	}
	wait.Eventually(t, patience, func() bool { return s.Task(t, id).Releases >= 2 }, "it is not left to the other")
	rests := s.Task(t, id)
	if rests.NotBefore == 0 || rests.Releases != 2 || !strings.HasSuffix(rests.Fields["avoid"], " /") {
		t.Errorf("handed back %d times, it rests until %v and is left to %q", rests.Releases, rests.NotBefore, rests.Fields["avoid"])
	}
}

// boasting is the view of a worker that is told by the other one, w1 or w2, that it keeps everything.
type boasting struct{ Backend }

func (*boasting) Keepers(_ context.Context, worker string, _ task.Bucket, _ string) ([]string, int, error) {
	return []string{map[string]string{"w1": "w2", "w2": "w1"}[worker]}, 1, nil
}

// While Redis is away a worker knows neither who keeps a version nor which one is the first: it asks again, and nothing fails.
func TestGoneInAnOutage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	pinned, file, _ := s.pinnedScript(t, "p", "echo first")
	s.start(t, apart(t, s.Dial(t), "has", t.TempDir()))
	s.await(t, s.open(t, pinned), sm.Executed)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s.await(t, s.open(t, s.script(t, "slow", "while [ ! -e "+dir+"/go ]; do sleep 0.01; done")), sm.Running)
	lacks := &away{}
	s.start(t, apart(t, s.Dial(t), "lacks", t.TempDir()), func(o *options) { lacks.Backend, o.Backend = o.Backend, lacks })
	id := s.open(t, pinned)
	wait.Eventually(t, patience, func() bool { return s.Task(t, id).Round == 1 || s.Task(t, id).State == sm.Executed }, "it is not left to the other")
	touch(t, filepath.Join(dir, "go"))
	checkFields(t, s.await(t, id, sm.Executed), map[string]string{"0:worker": "lacks", "1:worker": "has", "1:output": "first\n"})
	if !lacks.asked.Load() {
		t.Error("nothing was lost")
	}
}

// away loses the first question that it is asked.
type away struct {
	Backend

	asked atomic.Bool
}

func (a *away) Keepers(ctx context.Context, worker string, b task.Bucket, version string) ([]string, int, error) {
	if a.asked.CompareAndSwap(false, true) {
		return nil, 0, task.ErrUnreachable
	}
	return a.Backend.Keepers(ctx, worker, b, version)
}

// firstCalls counts how often a worker asks for the version of its plan.
type firstCalls struct {
	Backend

	n    atomic.Int32
	lost bool // the first of its questions
}

func (c *firstCalls) FirstVersion(ctx context.Context, plan task.PlanID, source, hash string) (string, error) {
	if c.n.Add(1) == 1 && c.lost {
		return "", task.ErrUnreachable
	}
	return c.Backend.FirstVersion(ctx, plan, source, hash)
}

// unpinned is a task as the verbs open it where they cannot read the source.
func unpinned(file string) func(*task.Definition) {
	return func(d *task.Definition) {
		storetest.Set(d, "program", "p", "source", "rsync:"+file+task.PinFirst, "archive", task.ArchiveAtOnce)
	}
}

// job makes a job, openOf opens a task of it.
func (s *site) job(t *testing.T) task.PlanID {
	t.Helper()
	id, err := s.Store.NewPlan(t.Context(), task.PlanSpec{RequestKey: conn.NewToken(), Job: true})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (s *site) openOf(t *testing.T, job task.PlanID, file string) int64 {
	t.Helper()
	ids, err := s.Store.Open(t.Context(), tasks.OpenRequest{
		Key: conn.NewToken(), Plan: job, Job: true, Specs: []task.Definition{storetest.Spec(unpinned(file))},
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids[0]
}

// What a submission could not pin all of its tasks run as the first worker found it, also where it has changed since; each worker asks once.
// The next submission runs what is there then, and so does a task of none.
func TestFirstWorkerPins(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, file, hash := s.pinnedScript(t, "p", "echo first")
	ran := func(id int64, want string) {
		t.Helper()
		got := s.await(t, id, sm.Executed, sm.Archived)
		last := sm.RoundField(got.Round, "")
		if out := got.Fields[last+"output"]; out != want+"\n" {
			t.Errorf("task %d says %q, want %q; its log:\n%s", id, out, want, got.Fields["log"])
		}
	}
	first := s.job(t)
	open := func(job task.PlanID) int64 { return s.openOf(t, job, file) }
	one := &firstCalls{lost: true}
	s.start(t, apart(t, s.Dial(t), "one", t.TempDir()), func(o *options) { one.Backend, o.Backend = o.Backend, one })
	ran(open(first), "first")
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho second"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		ran(open(first), "first")
	}
	if n := one.n.Load(); n != 3 { // asked again after an outage, and then said what it found
		t.Errorf("the first worker asked %d times", n)
	}
	two := &firstCalls{}
	s.start(t, apart(t, s.Dial(t), "two", t.TempDir()), func(o *options) { two.Backend, o.Backend = o.Backend, two })
	ids := make([]int64, 20)
	for i := range ids {
		ids[i] = open(first)
	}
	for _, id := range ids {
		ran(id, "first")
	}
	if n := two.n.Load(); n > 1 {
		t.Errorf("the second worker asked %d times", n)
	}
	checkFields(t, s.Task(t, ids[0]), map[string]string{"source": "rsync:" + file + task.PinFirst})
	ran(open(s.job(t)), "second")
	ran(s.open(t, unpinned(file)), "second")
	if got := s.Raw.HGet(t.Context(), s.Key("plan:1"), "version:"+conn.Digest("rsync:"+file)).Val(); got != hash {
		t.Errorf("the plan has version %q", got)
	}
}

// After a flush plans are counted anew: what a worker knows of one is not that of another.
func TestFirstVersionOfBeforeAFlush(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	_, file, _ := s.pinnedScript(t, "p", "echo first")
	w := s.start(t, apart(t, s.Dial(t), "w", t.TempDir()))
	for _, want := range []string{"first", "second"} {
		job := s.job(t)
		if checkFields(t, s.await(t, s.openOf(t, job, file), sm.Executed, sm.Archived), map[string]string{"0:output": want + "\n"}); job != 1 {
			t.Fatalf("plan %d is not the first", job)
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\necho second"), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Store.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.signalChange()
	}
}
