package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tdf-go/tdf/internal/ops/trace"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// success is the commit of a worker that settles what it was given, as of now.
func success(t *testing.T, c *tasks.Claimed, now statemachine.Time) tasks.Commit {
	t.Helper()
	given := c.Task
	given.EndBefore = c.Expiry
	m, err := statemachine.Decide(&given, statemachine.Occurrence{
		Event: statemachine.Report, Actor: statemachine.Worker, Claim: given.Current.Claim, Round: given.Round, Settles: true,
	}, now)
	if err != nil || !m.Settles() {
		t.Fatalf("%+v, error %v", m, err)
	}
	return tasks.Commit{Move: m, Writer: "worker-A", Bucket: c.Bucket, Fields: []string{"0:output", "33\n", "0:error", ""}}
}

// One move is both: stamps, lines, events, numbers, and what ends with a round and with a task.
func exerciseSuccess(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, 951782400*1_000_000)
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "timeout", "5") }))
	c := sp.Claim(t, "worker-A", 1)[0]
	if _, err := sp.Store.WaitServer(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	before := sp.Raw.HGet(t.Context(), sp.Key("meta"), "seq").Val()
	sp.SetClock(t, 951782401*1_000_000)
	order := success(t, &c, c.Task.Current.Running)
	for i, want := range []statemachine.Result{statemachine.Moved, statemachine.Repeated} {
		if out := applyAll(t, sp, order); out[0].Result != want || out[0].Unsettled || out[0].Err != nil {
			t.Errorf("sent %d times: %+v", i+1, out)
		}
	}
	checkState(t, sp, 1, statemachine.Succeeded)
	got := sp.Task(t, 1)
	stamps := storetest.Stamps(got, 0)
	if at := statemachine.Time(951782401 * 1_000_000); stamps["executed"] != at || stamps["succeeded"] != at || got.Rev != 2 {
		t.Errorf("stamps %v, rev %d", stamps, got.Rev)
	}
	if want := "2000-02-29 00:00:00 - worker-A   moving task 1: open -> running\n" +
		"2000-02-29 00:00:01 - worker-A   moving task 1: running -> executed\n" +
		"2000-02-29 00:00:01 - worker-A   moving task 1: executed -> succeeded"; got.Fields["log"] != want {
		t.Errorf("log\n%s\nwant\n%s", got.Fields["log"], want)
	}
	if got.Fields["0:end"] != "report" || got.Fields["0:output"] != "33\n" {
		t.Errorf("record %v", got.Fields)
	}
	if after := sp.Raw.HGet(t.Context(), sp.Key("meta"), "seq").Val(); before != "2" || after != "4" {
		t.Errorf("seq was %s and became %s", before, after)
	}
	if n := sp.Raw.HGet(t.Context(), sp.Key("tally:default"), "succeeded").Val(); n != "1" {
		t.Errorf("tally %q", n)
	}
	for _, key := range []string{"due", "executed", "running", "busy:queue:default", "wake_server"} {
		if sp.Raw.Exists(t.Context(), sp.Key(key)).Val() != 0 {
			t.Errorf("%s is not empty", key)
		}
	}
	moveOn(t, sp, 1, statemachine.Archive, statemachine.Manager)
	checkTold(t, sp, "worker report running -> executed", "worker settle executed -> succeeded", "manager archive succeeded -> archived")
}

// checkTold compares what the events say of task 1 from its report on, each under its own number.
func checkTold(t *testing.T, sp *storetest.Space, want ...string) {
	t.Helper()
	events, err := sp.Store.Events(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for i, e := range events {
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has the number %d", i+1, e.Seq)
		}
		if e.From != statemachine.None && e.From != statemachine.Open {
			told = append(told, strings.Join([]string{string(e.Actor), string(e.Event), string(e.From), "->", string(e.To)}, " "))
		}
	}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	for _, p := range trace.Check(events) {
		t.Error(p)
	}
}

// unsettled is a success that its worker must not settle: what happens between its decision, made at once, and the script.
type unsettled struct {
	spec []string
	// happens returns the end that a server gives the task afterwards, None where the report is refused.
	happens func(*testing.T, *storetest.Space, *tasks.Claimed, *tasks.Commit) statemachine.State
}

var succeeds = statemachine.Succeeded

var unsettledBy = map[string]unsettled{
	"end_before passes": {spec: []string{"end_before", noon.Add(5 * second).Text()}, happens: func(t *testing.T, sp *storetest.Space, _ *tasks.Claimed, _ *tasks.Commit) statemachine.State {
		t.Helper()
		sp.SetClock(t, noon.Add(5*second)+1)
		return statemachine.Expired
	}},
	"the timeout passes": {spec: []string{"timeout", "5"}, happens: func(t *testing.T, sp *storetest.Space, _ *tasks.Claimed, _ *tasks.Commit) statemachine.State {
		t.Helper()
		sp.SetClock(t, noon.Add(5*second)+1)
		return succeeds
	}},
	"a stop is asked for": {happens: func(t *testing.T, sp *storetest.Space, _ *tasks.Claimed, _ *tasks.Commit) statemachine.State {
		t.Helper()
		seen := sp.Task(t, 1)
		m := decided(t, &seen.Task, statemachine.Cancel, statemachine.Manager, noon)
		if out, err := sp.Store.AskStop(t.Context(), tasks.Commit{Move: m, Writer: "m"}); err != nil || out[0].Result != statemachine.Moved {
			t.Fatalf("%+v, error %v", out, err)
		}
		return succeeds
	}},
	"the mark of another client": {happens: func(t *testing.T, sp *storetest.Space, _ *tasks.Claimed, _ *tasks.Commit) statemachine.State {
		t.Helper()
		sp.Raw.HSet(t.Context(), sp.Key("task:1"), "cancel_requested", noon.Text())
		return succeeds
	}},
	"the task changes": {happens: func(t *testing.T, sp *storetest.Space, c *tasks.Claimed, _ *tasks.Commit) statemachine.State {
		t.Helper()
		if err := sp.Store.Tell(t.Context(), "w", &c.Task, tasks.News{Lines: []tasks.Line{{At: noon, Text: "half"}}}); err != nil {
			t.Fatal(err)
		}
		return succeeds
	}},
	"the session is lost": {happens: func(t *testing.T, sp *storetest.Space, _ *tasks.Claimed, _ *tasks.Commit) statemachine.State {
		t.Helper()
		sp.SetClock(t, noon.Add(3600*second))
		lost, err := sp.Store.Lost(t.Context(), 10, fleet.Watched{})
		if err != nil || len(lost.Workers) != 1 {
			t.Fatalf("%+v, error %v", lost, err)
		}
		return succeeds
	}},
	"another session": {happens: func(t *testing.T, sp *storetest.Space, _ *tasks.Claimed, _ *tasks.Commit) statemachine.State {
		t.Helper()
		sp.Raw.HIncrBy(t.Context(), sp.Key("worker:w"), "incarnation", 1)
		return succeeds
	}},
	"no session": {happens: func(t *testing.T, sp *storetest.Space, _ *tasks.Claimed, _ *tasks.Commit) statemachine.State {
		t.Helper()
		sp.Raw.Del(t.Context(), sp.Key("worker:w"))
		return succeeds
	}},
	"a session of another type": {happens: func(t *testing.T, sp *storetest.Space, _ *tasks.Claimed, _ *tasks.Commit) statemachine.State {
		t.Helper()
		sp.Raw.Del(t.Context(), sp.Key("worker:w"))
		sp.Raw.Set(t.Context(), sp.Key("worker:w"), "x", 0)
		return succeeds
	}},
	"a plan waits": {happens: func(t *testing.T, sp *storetest.Space, _ *tasks.Claimed, _ *tasks.Commit) statemachine.State {
		t.Helper()
		sp.Raw.HSet(t.Context(), sp.Key("task:1"), "plan", "7")
		return succeeds
	}},
	"another claim": {happens: func(_ *testing.T, _ *storetest.Space, _ *tasks.Claimed, o *tasks.Commit) statemachine.State {
		o.Claim += "0"
		return statemachine.None
	}},
	"the next round": {happens: func(t *testing.T, sp *storetest.Space, _ *tasks.Claimed, _ *tasks.Commit) statemachine.State {
		t.Helper()
		moveOn(t, sp, 1, statemachine.Lose, statemachine.Server)
		sp.Claim(t, "w", 1)
		return statemachine.None
	}},
	"a new epoch": {happens: func(t *testing.T, sp *storetest.Space, _ *tasks.Claimed, _ *tasks.Commit) statemachine.State {
		t.Helper()
		sp.Raw.HSet(t.Context(), sp.Key("meta"), "epoch", "2")
		sp.Store = sp.Dial(t)
		return statemachine.None
	}},
}

// TestUnsettled: what its worker has decided on is no longer so. Then the report counts, and a server judges it; and
// where the round is no longer the worker's, nothing changes.
func TestUnsettled(t *testing.T) {
	t.Parallel()
	for name, c := range unsettledBy {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			sp.SetClock(t, noon)
			sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, c.spec...) }))
			held := sp.ClaimUnder(t, sp.Register(t, "w"), 1)[0]
			order := success(t, &held, noon)
			end := c.happens(t, sp, &held, &order)
			before := sp.Raw.HGetAll(t.Context(), sp.Key("task:1")).Val()
			out := applyAll(t, sp, order)[0]
			if end == statemachine.None {
				after := sp.Raw.HGetAll(t.Context(), sp.Key("task:1")).Val()
				if out.Result != statemachine.Refused || diffAny(before, after) != "" {
					t.Errorf("%+v: %s", out, diffAny(before, after))
				}
				return
			}
			if out.Result != statemachine.Moved || !out.Unsettled || out.Err != nil {
				t.Errorf("%+v", out)
			}
			checkState(t, sp, 1, statemachine.Executed)
			got := sp.Task(t, 1)
			if stamps := storetest.Stamps(got, 0); stamps["executed"] == 0 || stamps["succeeded"] != 0 || strings.Contains(got.Fields["log"], "succeeded") {
				t.Errorf("record %v", got.Fields)
			}
			if sp.Raw.LLen(t.Context(), sp.Key("wake_server")).Val() != 1 || sp.Raw.Exists(t.Context(), sp.Key("tally:default")).Val() != 0 {
				t.Error("no server is woken, or an outcome is counted")
			}
			if out := applyAll(t, sp, order)[0]; out.Result != statemachine.Repeated {
				t.Errorf("sent again: %+v", out)
			}
			sp.Raw.HDel(t.Context(), sp.Key("task:1"), "plan")
			moveOn(t, sp, 1, statemachine.Settle, statemachine.Server)
			checkState(t, sp, 1, end)
		})
	}
}

// A clock that is set back after the decision, or before the claim, settles nothing that a server would not.
func TestSettledByTheClock(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "end_before", noon.Add(5*second).Text()) }))
	sp.StepClock(t, noon-statemachine.Time(60*second)) // the time of the namespace goes on from noon
	held := sp.Claim(t, "w", 1)[0]
	order := success(t, &held, held.Task.Current.Running)
	if end := noon.Add(60 * second); order.Until < end || order.Until > end.Add(5*second) {
		t.Errorf("settles until %s, TIME is at end_before about %s", order.Until.Text(), end.Add(5*second).Text())
	}
	sp.StepClock(t, noon.Add(5*second)+1)
	if out := applyAll(t, sp, order)[0]; !out.Unsettled {
		t.Errorf("%+v", out)
	}
	batch, err := sp.Store.Listed(t.Context(), statemachine.Executed, 0, 1)
	if err != nil || len(batch.Tasks) != 1 {
		t.Fatalf("%+v, error %v", batch, err)
	}
	if m := decided(t, &batch.Tasks[0].Task, statemachine.Settle, statemachine.Server, batch.Now); m.To != statemachine.Expired {
		t.Errorf("a server says %s", m.To)
	}
}
