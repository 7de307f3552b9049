package store_test

import (
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// noon is where tests with a set clock begin.
const noon = statemachine.Time(1_800_000_000_000_000)

const second = statemachine.Second

// scriptLosses are the calls whose reply is lost, by the script they use.
var scriptLosses = map[string]map[string]loss{
	"open": {
		"one":  {call: openCall(1)},
		"many": {prepare: opened(2), call: openCall(20)},
	},
	"turn": {
		"one of several": {prepare: opened(3), call: claimCall(1)},
		"all":            {prepare: opened(3), call: claimCall(9)},
		"none":           {call: claimCall(1)},
		"after another":  {prepare: claimedBefore, call: claimCall(1)},
	},
	"move": {
		"report":       {prepare: claimed, call: workerCall(statemachine.Report)},
		"success":      {prepare: claimed, call: successCall(0)},
		"late success": {prepare: claimed, call: successCall(30 * second)},
		"to archived":  {prepare: atOnceAfter(claimed), call: successCall(0)},
		"all the way":  {prepare: atOnceAfter(reported("bad")), call: clerkCall(statemachine.Server, statemachine.Settle)},
		"stop overdue": {prepare: claimed, call: workerCall(statemachine.StopOverdue)},
		"hand back":    {prepare: claimed, call: workerCall(statemachine.HandBack)},
		"terminate":    {prepare: claimed, call: workerCall(statemachine.Terminate)},
		"lose":         {prepare: claimed, call: clerkCall(statemachine.Server, statemachine.Lose)},
		"settle":       {prepare: reported(""), call: clerkCall(statemachine.Server, statemachine.Settle)},
		"fail, again":  {prepare: reported("bad"), call: clerkCall(statemachine.Server, statemachine.Settle)},
		"deadline":     {prepare: overdue, call: clerkCall(statemachine.Server, statemachine.Deadline)},
		"hold":         {prepare: opened(1), call: clerkCall(statemachine.Manager, statemachine.Hold)},
		"cancel":       {prepare: opened(1), call: clerkCall(statemachine.Manager, statemachine.Cancel)},
	},
	"note":   {"lines": {prepare: claimed, call: noteCall}},
	"meta":   {"of a manager": {prepare: claimed, call: metaCall(false)}, "of a program": {prepare: claimed, call: metaCall(true)}},
	"params": {"waiting": {prepare: opened(1), call: paramsCall}},
	"index":  {"foreign task": {prepare: foreign, call: reindexCall, hint: true}},
	"epoch": {
		"opened": {prepare: claimed, call: epochCall(999)},
		"none":   {prepare: claimed, call: epochCall(0)},
	},
	"arrive":    {"another life": {prepare: claimed, call: arriveCall, hint: true}},
	"flush":     {"claimed": {prepare: claimed, call: flushCall}},
	"watermark": {"moved": {prepare: foreign, call: watermarkCall}},
	"presence":  {"manager": {call: registerCall(false)}, "stand-in": {call: registerCall(true)}},
	"repair": {
		"in no set":     {prepare: inNoSet, call: relistCall(statemachine.Open)},
		"archived":      {prepare: archivedByForeigner, call: relistCall(statemachine.Archived)},
		"set aside":     {prepare: damaged, call: setAsideCall},
		"no hash":       {prepare: hashGone, call: setAsideCall},
		"comes back":    {prepare: mended, call: relistCall(statemachine.Open)},
		"stray entries": {prepare: stray, call: relistCall(statemachine.Open)},
	},
}

// commandLosses are the writing commands that are no scripts, by the method of
// go-redis.
var commandLosses = map[string]struct {
	command string
	cases   map[string]loss
}{
	"HSet": {"HSET", map[string]loss{
		"publish": {call: func(t *testing.T, st *store.Store) step {
			return done(func() error { return st.PublishGrace(t.Context(), 7*second) })
		}},
		"publish quarantine": {call: func(t *testing.T, st *store.Store) step {
			return done(func() error { return st.PublishQuarantine(t.Context(), "on") })
		}},
		"publish blobs": {call: func(t *testing.T, st *store.Store) step {
			return done(func() error { return st.PublishBlobs(t.Context(), 5, 7, time.Hour) })
		}},
		"publish lease": {call: func(t *testing.T, st *store.Store) step {
			return done(func() error { return st.PublishLease(t.Context(), 7*second) })
		}},
	}},
	"Set": {"SET", map[string]loss{"part of a blob": {call: putCall}, "ask": {call: askCall}, "answer": {prepare: errandOpen, call: answerCall}}},
	"Publish": {"PUBLISH", map[string]loss{"call the workers": {prepare: begun, call: func(t *testing.T, st *store.Store) step {
		return done(func() error { return st.PublishLease(t.Context(), 7*second) })
	}}}},
	"HSetNX": {"HSETNX", map[string]loss{"keep the index": {prepare: opened(2), call: func(t *testing.T, st *store.Store) step {
		return func() (any, error) { from, to, err := st.KeepIndex(t.Context()); return []int64{from, to}, err }
	}}}},
	"ZAddXX": {"ZADD", map[string]loss{"postpone": {prepare: overdue, call: func(t *testing.T, st *store.Store) step {
		return done(func() error { return st.Postpone(t.Context(), noon, 3*second, 1, 2) })
	}}}},
	"HDel": {"HDEL", map[string]loss{"deregister manager": {prepare: registeredManager, call: func(t *testing.T, st *store.Store) step {
		return done(func() error { return st.DeregisterManager(t.Context(), fleet.ManagerRecord{Instance: "i"}) })
	}}}},
	"Unlink": {"UNLINK", map[string]loss{"flush": {prepare: claimed, call: func(t *testing.T, st *store.Store) step {
		return func() (any, error) { return st.Flush(t.Context()) }
	}}}},
	"Del": {"DEL", map[string]loss{"ask": {call: askCall}, "publish no events": {prepare: claimed, call: func(t *testing.T, st *store.Store) step {
		return done(func() error { return st.PublishEvents(t.Context(), 0) })
	}}}},
	// BLPOP. The token is gone with the reply; waiters look after a second all the same.
	"Process": {"BLPOP", map[string]loss{"wait": {prepare: claimed, hint: true, call: func(t *testing.T, st *store.Store) step {
		return func() (any, error) { return st.WaitServer(t.Context(), 50*time.Millisecond) }
	}}}},
}

func opened(n int) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		request := tasks.OpenRequest{Key: "before"}
		for range n {
			request.Specs = append(request.Specs, finite())
		}
		if _, err := sp.Store.Open(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
}

// finite is a task with deadlines that may fail, time out and be lost once.
func finite() task.Definition {
	return storetest.Spec(func(s *task.Definition) {
		storetest.Set(s, "end_before", noon.Add(60*second).Text(), "timeout", "5", "max_fails", "1", "max_timeouts", "1")
	})
}

func openCall(n int) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		request := tasks.OpenRequest{Key: "again"}
		for range n {
			request.Specs = append(request.Specs, finite())
		}
		return func() (any, error) { return st.Open(t.Context(), request) }
	}
}

func claimCall(most int) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		return func() (any, error) {
			return st.Claim(t.Context(), tasks.ClaimRequest{
				Worker: "w", Request: "c", Candidates: storetest.Free(task.Bucket{}), Max: most,
			})
		}
	}
}

func claimed(t *testing.T, sp *storetest.Space) {
	t.Helper()
	opened(1)(t, sp)
	claimCall(1)(t, sp.Store).must(t)
}

func claimedBefore(t *testing.T, sp *storetest.Space) {
	t.Helper()
	opened(3)(t, sp)
	if _, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{
		Worker: "w", Request: "earlier", Candidates: storetest.Free(task.Bucket{}), Max: 1,
	}); err != nil {
		t.Fatal(err)
	}
}

func reported(errText string) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		claimed(t, sp)
		task := sp.Task(t, 1)
		sp.Report(t, &tasks.Claimed{Task: task.Task}, "out", errText)
	}
}

func succeeded(t *testing.T, sp *storetest.Space) {
	t.Helper()
	reported("")(t, sp)
	clerkCall(statemachine.Server, statemachine.Settle)(t, sp.Store).must(t)
}

// atOnceAfter prepares task 1 and marks it to be archived at once.
func atOnceAfter(prepare func(*testing.T, *storetest.Space)) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		prepare(t, sp)
		sp.Raw.HSet(t.Context(), sp.Key("task:1"), "archive", task.ArchiveAtOnce, "max_fails", "0")
		sp.Raw.HSet(t.Context(), sp.Key("meta"), "retention", "1")
	}
}

func overdue(t *testing.T, sp *storetest.Space) {
	t.Helper()
	claimed(t, sp)
	sp.SetClock(t, noon.Add(30*second))
}

// workerCall ends the round of task 1 in the name of its worker.
func workerCall(event statemachine.Event) func(*testing.T, *store.Store) step {
	return clerkCall(statemachine.Worker, event)
}

// successCall settles the success of task 1 in the name of its worker, so long after that was decided.
func successCall(late statemachine.Duration) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		seen, err := st.Task(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		at := seen.Current.Running
		order := success(t, &tasks.Claimed{Task: seen.Task, Bucket: seen.Bucket, Expiry: seen.EndBefore}, at)
		if late > 0 {
			order.Until = at.Add(-late)
		}
		return applyStep(t, st, order)
	}
}

// clerkCall decides about task 1 and makes the move.
func clerkCall(actor statemachine.Actor, event statemachine.Event) func(*testing.T, *store.Store) step {
	return clerkCallOn(actor, event, 1)
}

// clerkCallOn decides about a task and makes the move.
func clerkCallOn(actor statemachine.Actor, event statemachine.Event, id int64) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		task, err := st.Task(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		m, err := statemachine.Decide(&task.Task, statemachine.Occurrence{
			Event: event, Actor: actor, Claim: task.Current.Claim, Round: task.Round, Grace: second,
		}, noon.Add(30*second))
		if err != nil {
			t.Fatal(err)
		}
		order := tasks.Commit{
			Move: m, Writer: "x", Bucket: task.Bucket, Lines: []tasks.Line{{At: noon, Text: "line"}},
			Fields: []string{statemachine.RoundField(task.Round, "output"), "out"},
		}
		return applyStep(t, st, order)
	}
}

func applyStep(t *testing.T, st *store.Store, order tasks.Commit) step {
	t.Helper()
	return done(func() error {
		out, err := storetest.Apply(t.Context(), st, order)
		if err != nil {
			return err
		}
		return out[0].Err
	})
}
