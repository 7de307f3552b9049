package store_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A07, A20, A46: the whole life, with stamps and log.
func exerciseLife(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, 951782400*1_000_000-1_000_000) // 2000-02-28 23:59:59 plus a leap day follows
	sp.Open(t, storetest.Spec())
	c := sp.Claim(t, "worker-A", 1)
	sp.SetClock(t, 951782400*1_000_000)
	sp.Report(t, &c[0], "33\n", "")
	moveOn(t, sp, 1, statemachine.Settle, statemachine.Server)
	sp.SetClock(t, 951868799*1_000_000)
	moveOn(t, sp, 1, statemachine.Archive, statemachine.Manager)
	checkState(t, sp, 1, statemachine.Archived)
	task := sp.Task(t, 1)
	if task.Outcome != statemachine.Succeeded || task.Fields["outcome"] != "succeeded" || task.Rev != 4 {
		t.Errorf("outcome %s, rev %d", task.Outcome, task.Rev)
	}
	stamps := storetest.Stamps(task, 0)
	for _, name := range []string{"open", "running", "executed", "succeeded", "archived"} {
		if stamps[name] == 0 {
			t.Errorf("no stamp 0:%s", name)
		}
	}
	if task.Fields["0:output"] != "33\n" || task.Fields["0:worker"] != "worker-A" {
		t.Errorf("round %v", task.Fields)
	}
	want := "2000-02-28 23:59:59 - worker-A   moving task 1: open -> running\n" +
		"2000-02-29 00:00:00 - w          moving task 1: running -> executed\n" +
		"2000-02-29 00:00:00 - server     moving task 1: executed -> succeeded\n" +
		"2000-02-29 23:59:59 - manager    moving task 1: succeeded -> archived"
	if task.Fields["log"] != want {
		t.Errorf("log\n%s\nwant\n%s", task.Fields["log"], want)
	}
}

// A22: a move the task is not in place for changes nothing.
func exerciseIllegalMove(t *testing.T, sp *storetest.Space) {
	sp.Open(t, storetest.Spec())
	before := sp.Task(t, 1).Fields
	move := statemachine.Move{
		ID: 1, Event: statemachine.Settle, Actor: statemachine.Server, From: statemachine.Executed, To: statemachine.Succeeded,
		Deadline: statemachine.Never,
	}
	other := move
	other.From, other.To, other.Rev = statemachine.Open, statemachine.Expired, 7
	missing := other
	missing.ID = 99
	out := applyAll(t, sp, tasks.Commit{Move: move, Writer: "s"}, tasks.Commit{Move: other, Writer: "s"}, tasks.Commit{Move: missing, Writer: "s"})
	if !errors.Is(out[0].Err, statemachine.ErrConflict) || !errors.Is(out[1].Err, statemachine.ErrConflict) ||
		!errors.Is(out[2].Err, task.ErrDamaged) {
		t.Errorf("outcomes %+v", out)
	}
	if after := sp.Task(t, 1).Fields; !maps.Equal(before, after) {
		t.Errorf("fields %v, before %v", after, before)
	}
	if n := sp.Raw.Exists(t.Context(), sp.Key("task:99")).Val(); n != 0 {
		t.Error("a task came into being")
	}
	checkState(t, sp, 1, statemachine.Open)
}

// A23, B4/T2: the late worker of round 0 is refused while round 1 runs.
func exerciseStaleReport(t *testing.T, sp *storetest.Space) {
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "max_timeouts", "3") }))
	late := sp.Claim(t, "w1", 1)[0]
	task := sp.Task(t, 1)
	m := decided(t, &task.Task, statemachine.Lose, statemachine.Server, 0)
	applyAll(t, sp, tasks.Commit{Move: m, Writer: "server", Bucket: task.Bucket})
	if out := sp.Report(t, &late, "old", ""); !errors.Is(out.Err, statemachine.ErrStale) {
		t.Errorf("report for an open task: %+v", out)
	}
	second := sp.Claim(t, "w2", 1)[0]
	if second.Task.Round != 1 || second.Task.Losses != 1 {
		t.Errorf("second claim %+v", second.Task)
	}
	if out := sp.Report(t, &late, "old", ""); !errors.Is(out.Err, statemachine.ErrStale) {
		t.Errorf("report into the next round: %+v", out)
	}
	forged := second
	forged.Task.Current.Claim = late.Task.Current.Claim
	if out := sp.Report(t, &forged, "forged", ""); !errors.Is(out.Err, statemachine.ErrStale) {
		t.Errorf("report with another claim: %+v", out)
	}
	if out := sp.Report(t, &second, "new", ""); out.Result != statemachine.Moved {
		t.Errorf("report of the holder: %+v", out)
	}
	f := sp.Task(t, 1).Fields
	if _, ok := f["0:output"]; ok || f["1:output"] != "new" {
		t.Errorf("0:output %q, 1:output %q", f["0:output"], f["1:output"])
	}
}

// The closing of a round is remembered: a report sent again is recognised
// however far the task has gone, and changes nothing.
func exerciseRepeatedReport(t *testing.T, sp *storetest.Space) {
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "max_fails", "1") }))
	c := sp.Claim(t, "w", 1)[0]
	sp.Report(t, &c, "one", "bad")
	moveOn(t, sp, 1, statemachine.Settle, statemachine.Server)
	sp.Claim(t, "w", 1)
	before := sp.Task(t, 1).Fields
	if out := sp.Report(t, &c, "two", ""); out.Result != statemachine.Repeated || out.Err != nil {
		t.Errorf("repeated report: %+v", out)
	}
	if after := sp.Task(t, 1).Fields; !maps.Equal(before, after) {
		t.Errorf("fields %v, before %v", after, before)
	}
}

// Moves of one call stand for themselves; one refused does not touch the rest.
func exerciseBatch(t *testing.T, sp *storetest.Space) {
	sp.AddQueue(t, task.ParseQueue("q", nil))
	sp.Open(t, storetest.Spec(), storetest.Spec(), storetest.Spec(func(s *task.Definition) { storetest.Set(s, "max_fails", "1", "queue", "q") }))
	sp.Report(t, &sp.Claim(t, "w", 2)[0], "", "")
	r, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{Worker: "w", Request: "q", Candidates: storetest.Free(task.Bucket{Queue: "q"}), Max: 1})
	if err != nil || len(r.Tasks) != 1 {
		t.Fatalf("claimed %+v, error %v", r, err)
	}
	sp.Report(t, &r.Tasks[0], "", "bad")
	b, err := sp.Store.Listed(t.Context(), statemachine.Executed, 0, 10)
	if err != nil || len(b.Tasks) != 2 {
		t.Fatalf("executed %+v, error %v", b, err)
	}
	commits := make([]tasks.Commit, 0, 3)
	for i := range b.Tasks {
		m := decided(t, &b.Tasks[i].Task, statemachine.Settle, statemachine.Server, b.Now)
		commits = append(commits, tasks.Commit{Move: m, Writer: "s", Bucket: b.Tasks[i].Bucket})
	}
	wrong := commits[0]
	wrong.ID = 2
	out := applyAll(t, sp, commits[0], wrong, commits[1])
	if out[0].Result != statemachine.Moved || !errors.Is(out[1].Err, statemachine.ErrConflict) || out[2].Result != statemachine.Moved {
		t.Errorf("outcomes %+v", out)
	}
	checkState(t, sp, 1, statemachine.Succeeded)
	checkState(t, sp, 2, statemachine.Running)
	checkState(t, sp, 3, statemachine.Open)
	if n := sp.Raw.ZCard(t.Context(), sp.Key("ready:q:::0")).Val(); n != 1 {
		t.Error("the opened task is not in its bucket")
	}
	if again := applyAll(t, sp, commits...); again[0].Result != statemachine.Repeated || again[1].Result != statemachine.Repeated {
		t.Errorf("sent again: %+v", again)
	}
}

func exerciseNotes(t *testing.T, sp *storetest.Space) {
	sp.Open(t, storetest.Spec())
	c := sp.Claim(t, "w", 1)[0]
	line := tasks.Line{At: c.Task.Current.Running, Text: "downloading x from y"}
	for range 2 {
		if err := sp.Store.Tell(t.Context(), "w", &c.Task, tasks.News{Lines: []tasks.Line{line}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(sp.Task(t, 1).Fields["log"], " - w          downloading x from y"); n != 1 {
		t.Errorf("the line stands %d times in the log", n)
	}
	forged := c.Task
	forged.Current.Claim = "another"
	if err := sp.Store.Tell(t.Context(), "w", &forged, tasks.News{Lines: []tasks.Line{line}}); !errors.Is(err, statemachine.ErrStale) {
		t.Errorf("note under another claim: %v", err)
	}
	sp.Report(t, &c, "", "")
	if err := sp.Store.Tell(t.Context(), "w", &c.Task, tasks.News{Lines: []tasks.Line{line}}); !errors.Is(err, statemachine.ErrStale) {
		t.Errorf("note after the report: %v", err)
	}
}

// A long line on a short log does not double what stands there.
func exerciseLongLine(t *testing.T, sp *storetest.Space) {
	sp.Open(t, storetest.Spec())
	c := sp.Claim(t, "w", 1)[0]
	for _, text := range []string{strings.Repeat("a", 10_000), strings.Repeat("b", 60_000)} {
		if err := sp.Store.Tell(t.Context(), "w", &c.Task, tasks.News{Lines: []tasks.Line{{At: noon, Text: text}}}); err != nil {
			t.Fatal(err)
		}
	}
	log := sp.Task(t, 1).Fields["log"]
	if a, b := strings.Count(log, "a"), strings.Count(log, "b"); a > 10_100 || b > 60_100 {
		t.Errorf("%d and %d letters in the log, want about 10,000 and 60,000", a, b)
	}
}

// A log stays bounded and keeps its beginning and its end.
func exerciseLongLog(t *testing.T, sp *storetest.Space) {
	sp.Open(t, storetest.Spec())
	c := sp.Claim(t, "w", 1)[0]
	for i := range 100 {
		line := tasks.Line{At: noon, Text: strings.Repeat(string(rune('a'+i%26)), 2000)}
		if err := sp.Store.Tell(t.Context(), "w", &c.Task, tasks.News{Lines: []tasks.Line{line}}); err != nil {
			t.Fatal(err)
		}
	}
	sp.Report(t, &c, "", "")
	log := sp.Task(t, 1).Fields["log"]
	lines := slices.Collect(strings.Lines(log))
	if len(log) > 70_000 || !strings.Contains(lines[0], "open -> running") || !strings.HasSuffix(log, "running -> executed") ||
		!strings.Contains(log, "\n[lines left out]\n") {
		t.Errorf("log of %d bytes begins %q", len(log), lines[0])
	}
}
