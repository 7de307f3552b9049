package manager

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/wait"
	"github.com/tdf-go/tdf/internal/testkit/worktest"
	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// retriedTexts says in short what became of each.
func retriedTexts(all []Retried) []string {
	texts := make([]string, len(all))
	for i, r := range all {
		why := ""
		switch {
		case errors.Is(r.Err, task.ErrNoTask):
			why = " not found"
		case errors.Is(r.Err, task.ErrNotEnded):
			why = " not ended"
		case errors.Is(r.Err, task.ErrNoQueue):
			why = " no queue"
		case r.Err != nil:
			why = " " + fieldOf(r.Err)
		}
		texts[i] = fmt.Sprintf("%d %s %d %v%s", r.ID, r.Ended, r.New, r.Existing, why)
	}
	return texts
}

// A retry has the definition of the ended task and is linked to it; a second one
// answers with the first.
func TestRetry(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	failing := task.Spec{
		Program: "p", Source: "rsync:run.sh", Argv: []string{"a b", ""}, Retry: task.Retry{Limit: task.AtMost(1), ExitCodes: []int{1}}, Priority: new(4), Timeout: time.Minute,
		Charge: task.ChargeProgram, Key: "once", FailOn: task.FailOnExit, MaxLosses: task.AtMost(9),
	}
	mustOpen(t, m, 1, spec())
	ids := []int64{1, 2, 3, 4}
	if _, err := m.Cancel(t.Context(), []int64{1}, ChangeOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Submit(t.Context(), failing); err != nil {
		t.Fatal(err)
	}
	drainAll(t, m, 2)
	mustOpen(t, m, 1, task.Spec{Program: "p", Hold: "x"})
	dry, err := m.Retry(t.Context(), ids, RetryOptions{ChangeOptions: ChangeOptions{DryRun: true}})
	want := []string{"1 cancelled 0 false", "2 failed 0 false", "3 blocked 0 false not ended", "4  0 false not found"}
	if got := retriedTexts(dry); err != nil || !slices.Equal(got, want) {
		t.Errorf("dry: %q, %v, want %q", got, err, want)
	}
	for _, c := range []struct {
		opts RetryOptions
		want string
	}{
		{RetryOptions{}, "1 cancelled 4 false;2 failed 5 false;3 blocked 0 false not ended;99  0 false not found"},
		{RetryOptions{}, "1 cancelled 4 true;2 failed 5 true;3 blocked 0 false not ended;99  0 false not found"},
		{RetryOptions{ChangeOptions: ChangeOptions{DryRun: true}}, "1 cancelled 4 true;2 failed 5 true;3 blocked 0 false not ended;99  0 false not found"},
		{RetryOptions{Again: true}, "1 cancelled 6 false;2 failed 7 false;3 blocked 0 false not ended;99  0 false not found"},
	} {
		got, err := m.Retry(t.Context(), []int64{1, 2, 3, 99}, c.opts)
		if text := strings.Join(retriedTexts(got), ";"); err != nil || text != c.want {
			t.Errorf("%q, %v, want %q", text, err, c.want)
		}
	}
	old, again, loose := mustTask(t, m, 2), mustTask(t, m, 5), mustTask(t, m, 7)
	if old.RetriedBy != 5 || again.RetryOf != 2 || again.State != sm.Open || again.Fails != 0 || loose.RetryOf != 0 {
		t.Errorf("retried by %d, retry of %d, %s with %d fails; again of %d", old.RetriedBy, again.RetryOf, again.State, again.Fails, loose.RetryOf)
	}
	for _, name := range task.DefinitionNames() {
		if a, b := old.Fields[name], again.Fields[name]; a != b {
			t.Errorf("%s: %q, want %q", name, b, a)
		}
	}
	if _, ok := again.Fields["key"]; ok || again.Fields["retry_of"] != "2" {
		t.Errorf("%v", again.Fields)
	}
	worktest.Drain(t, s, worktest.Echo)
}

// A queue counts what was retried by itself, each once, and never more than it has counted as ended.
func TestRetriedAreCounted(t *testing.T) {
	t.Parallel()
	ns, srv := redistest.Namespace(t), redistest.Shared(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	check := func(ended, retried int64) {
		t.Helper()
		q, err := m.Queue(t.Context(), task.DefaultQueue)
		if err != nil || q.Ended[sm.Failed] != ended || q.Retried != retried {
			t.Errorf("failed %v, retried %d, %v; want %d and %d", q.Ended, q.Retried, err, ended, retried)
		}
	}
	retry := func(ids ...int64) {
		t.Helper()
		if _, err := m.Retry(t.Context(), ids, RetryOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	mustOpen(t, m, 3, spec())
	worktest.Drain(t, s, worktest.Fail)
	check(3, 0)
	retry(1, 2, 1)
	retry(1)
	check(1, 2)
	if _, err := m.Retry(t.Context(), []int64{3}, RetryOptions{Again: true}); err != nil { // not linked, so it stands for nothing
		t.Fatal(err)
	}
	check(1, 2)
	worktest.Drain(t, s, worktest.Fail)
	check(4, 2)
	if o, err := m.Overview(t.Context(), 10); err != nil || len(o.Failures) != 4 || o.Ended()[sm.Failed] != 4 {
		t.Errorf("%+v, %v, want 4 failures", o.Failures, err)
	}
	srv.Do(t, "DEL", ns+":tally:default") // as after another client, or a queue that was made again
	retry(3)
	check(0, 0)
	srv.Do(t, "SET", ns+":tally:default", "spoilt")
	retry(4)
	if mustTask(t, m, 4).RetriedBy == 0 {
		t.Error("a count that is spoilt keeps a task from being retried")
	}
}

// drainAll lets tasks of every bucket fail until the one of that id has ended.
func drainAll(t *testing.T, m *Manager, id int64) {
	t.Helper()
	s := worktest.Open(t, m.Namespace())
	for range 10 {
		if mustTask(t, m, id).EndState() != sm.None {
			return
		}
		for _, c := range claim(t, s, 10) {
			reportError(t, s, c.Task.ID, "broken")
		}
		if _, err := worktest.Round(t.Context(), s, worktest.Fail); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("task %d has not ended", id)
}

// What cannot be opened now is told of the very task, and the others are opened.
func TestRetryWhatCannotBe(t *testing.T) {
	t.Parallel()
	ns, srv := redistest.Namespace(t), redistest.Shared(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	mustOpen(t, m, 4, spec())
	worktest.Drain(t, s, worktest.Fail)
	srv.Do(t, "HSET", ns+":task:2", "end_before", "1000")
	srv.Do(t, "HSET", ns+":task:3", "queue", "gone")
	srv.Do(t, "HSET", ns+":task:4", "argv", "{")
	got, err := m.Retry(t.Context(), []int64{1, 2, 3, 4}, RetryOptions{})
	want := []string{"1 failed 5 false", "2 failed 0 false end_before", "3 failed 0 false no queue", "4 failed 0 false "}
	if texts := retriedTexts(got); err != nil || !slices.Equal(texts, want) || !errors.Is(got[3].Err, task.ErrDamaged) {
		t.Errorf("%q, %v, want %q", texts, err, want)
	}
	got, err = m.Retry(t.Context(), []int64{2}, RetryOptions{EndBefore: time.Now().Add(time.Hour)})
	if err != nil || got[0].Err != nil || got[0].New != 6 {
		t.Errorf("with another end: %+v, %v", got, err)
	}
	if diff := cmp.Diff("1000", mustTask(t, m, 2).Fields["end_before"]); diff != "" {
		t.Error(diff)
	}
}

// A wait takes a retry for the task that it repeats, whether it was opened before the wait or while it went on.
func TestWaitForRetries(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m, s := newManager(t, ns), worktest.Open(t, ns)
	mustOpen(t, m, 3, spec())
	worktest.Drain(t, s, worktest.Fail)
	retry := func(ids ...int64) {
		t.Helper()
		if _, err := m.Retry(t.Context(), ids, RetryOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	retry(1, 2) // as 4 and 5
	worktest.Drain(t, s, worktest.Fail)
	retry(4) // as 6
	check := func(what string, p Progress, err error, total int, states map[sm.State]int, unsuccessful ...int64) {
		t.Helper()
		if err != nil || p.Total != total || p.Done != total || !maps.Equal(p.States, states) || !slices.Equal(p.Unsuccessful, unsuccessful) {
			t.Errorf("%s: %+v, %v; want %d, %v, unsuccessful %v", what, p, err, total, states, unsuccessful)
		}
	}
	type ended struct {
		p   Progress
		err error
	}
	one, all := make(chan ended, 1), make(chan ended, 1)
	looked := make(chan Progress, 100)
	go func() {
		p, err := m.Wait(t.Context(), []int64{1}, func(p Progress) { looked <- p })
		one <- ended{p, err}
	}()
	go func() {
		p, err := m.WaitAll(t.Context(), func(p Progress) { looked <- p })
		all <- ended{p, err}
	}()
	for range 2 {
		if p := wait.Receive(t, 30*time.Second, looked, "no report"); p.Total == p.Done {
			t.Errorf("it does not wait for task 6: %+v", p)
		}
	}
	retry(3) // as 7, when both have seen that it failed
	worktest.Drain(t, s, worktest.Echo)
	e := wait.Receive(t, 30*time.Second, one, "the wait for one does not end")
	check("one", e.p, e.err, 1, map[sm.State]int{sm.Succeeded: 1})
	e = wait.Receive(t, 30*time.Second, all, "the wait for all does not end")
	check("all", e.p, e.err, 3, map[sm.State]int{sm.Succeeded: 2, sm.Failed: 1}, 5)
	p, err := m.Wait(t.Context(), []int64{1, 2, 3, 4}, nil)
	check("again", p, err, 3, map[sm.State]int{sm.Succeeded: 2, sm.Failed: 1}, 5)
	redistest.Shared(t).Do(t, "DEL", ns+":task:6") // ended, and kept no longer
	p, err = m.Wait(t.Context(), []int64{4, 5}, nil)
	check("without its record", p, err, 1, map[sm.State]int{sm.Failed: 1}, 5)
}

// Attributes change in each state; a retry and a replay have them as they are by then.
func TestAttributes(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m := newManager(t, ns)
	with := spec()
	with.Meta, with.Archive = map[string]string{"phase": "first", "owner": "ann"}, task.ArchiveAtOnce
	mustOpen(t, m, 1, with)
	mustOpen(t, m, 1, spec())
	set := func(ids []int64, o ChangeOptions, pairs ...string) []Change {
		t.Helper()
		meta := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			meta[pairs[i]] = pairs[i+1]
		}
		done, err := m.SetMeta(t.Context(), ids, meta, o)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	set([]int64{1}, ChangeOptions{DryRun: true}, "phase", "dry")
	if done := set([]int64{1, 2, 9}, ChangeOptions{By: "bob", Reason: "why not"}, "phase", "second"); done[0].Err != nil || done[0].Before != sm.Open ||
		done[1].Err != nil || !errors.Is(done[2].Err, task.ErrNoTask) {
		t.Errorf("%+v", done)
	}
	if text := fmt.Sprint(mustTask(t, m, 1).Log); !strings.Contains(text, "attributes phase set by bob: why not") || strings.Contains(text, "dry") {
		t.Errorf("log %q", text)
	}
	worktest.Drain(t, worktest.Open(t, ns), func(*tasks.Claimed) worktest.Result { return worktest.Result{} })
	if done := set([]int64{1}, ChangeOptions{}, "owner", "", "reviewed", "yes"); done[0].Err != nil || done[0].After != sm.Archived {
		t.Errorf("%+v", done)
	}
	for _, id := range repeated(t, m, 1) {
		if is := mustTask(t, m, id).Meta; !maps.Equal(is, map[string]string{"phase": "second", "reviewed": "yes"}) {
			t.Errorf("task %d: %q", id, is)
		}
	}
	for want, meta := range map[string]map[string]string{"2": {"phase": "second", "reviewed": ""}, "1 3 4": {"reviewed": "yes"}, "": {"reviewed": "no"}} {
		var found []string
		for one, err := range m.Select(t.Context(), Selection{Meta: meta, Archived: true}) {
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, fmt.Sprint(one.ID))
		}
		slices.Sort(found)
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%v: tasks %s, want %s", meta, got, want)
		}
	}
	for _, meta := range []map[string]string{nil, {"No": "x"}, {"a": "x\ny"}, {"a": "\xff"}} {
		if _, err := m.SetMeta(t.Context(), []int64{1}, meta, ChangeOptions{}); fieldOf(err) != "meta" {
			t.Errorf("%q: %v", meta, err)
		}
	}
}

// Parameters change while a task waits; a retry and a replay have them as they are by then.
func TestParams(t *testing.T) {
	t.Parallel()
	ns := redistest.Namespace(t)
	m := newManager(t, ns)
	with := spec()
	with.Params = json.RawMessage(`{"id": 9007199254740993, "deep": {"a": [null]}}`)
	mustOpen(t, m, 1, with)
	const opened, changed = `{"deep":{"a":[null]},"id":9007199254740993}`, `{"id":2}`
	if is := string(mustTask(t, m, 1).Params); is != opened {
		t.Errorf("opened with %s", is)
	}
	set := func(params string, o ChangeOptions) []Change {
		t.Helper()
		done, err := m.SetParams(t.Context(), []int64{1, 9}, json.RawMessage(params), o)
		if err != nil || !errors.Is(done[1].Err, task.ErrNoTask) {
			t.Fatalf("%+v, %v", done, err)
		}
		return done
	}
	if done := set(changed, ChangeOptions{DryRun: true}); done[0].Err != nil || string(mustTask(t, m, 1).Params) != opened {
		t.Errorf("%+v", done)
	}
	if done := set(`{"id": 2}`, ChangeOptions{By: "bob", Reason: "why not"}); done[0].Err != nil || done[0].After != sm.Open {
		t.Errorf("%+v", done)
	}
	if text := fmt.Sprint(mustTask(t, m, 1).Log); strings.Count(text, "params set by") != 1 || !strings.Contains(text, "params set by bob: why not") {
		t.Errorf("log %q", text)
	}
	worktest.Drain(t, worktest.Open(t, ns), func(*tasks.Claimed) worktest.Result { return worktest.Result{} })
	if done := set(`{"id":3}`, ChangeOptions{}); !errors.Is(done[0].Err, task.ErrBegun) {
		t.Errorf("%+v", done)
	}
	for _, id := range repeated(t, m, 1) {
		if is := string(mustTask(t, m, id).Params); is != changed {
			t.Errorf("task %d: %s", id, is)
		}
	}
	if _, err := m.SetParams(t.Context(), []int64{1}, json.RawMessage("[1]"), ChangeOptions{}); fieldOf(err) != "params" {
		t.Errorf("%v", err)
	}
}

// repeated are a task, a retry of it, and a replay.
func repeated(t *testing.T, m *Manager, id int64) []int64 {
	t.Helper()
	retried, err := m.Retry(t.Context(), []int64{id}, RetryOptions{})
	if err != nil || retried[0].Err != nil {
		t.Fatalf("%+v, %v", retried, err)
	}
	replay, err := m.Replay(t.Context(), id, LastRound, ChangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return []int64{id, retried[0].New, replay}
}
