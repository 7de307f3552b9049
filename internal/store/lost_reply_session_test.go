package store_test

import (
	"maps"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// sessionLosses are the scenarios of scripts that are about workers' sessions;
// they join scriptLosses.
var sessionLosses = map[string]map[string]loss{
	"register": {
		"new":             {call: beginCall},
		"known":           {prepare: left, call: beginCall},
		"drained":         {prepare: leftDrained, call: beginCall},
		"after a crash":   {prepare: judged, call: beginCall},
		"after an outage": {prepare: silent, call: beginCall},
		"replaces":        {prepare: sessionClaimed, call: replaceCall},
		"holds no more":   {prepare: judgedWithout, call: beginCall},
		"lists another's": {prepare: judgedStale, call: beginCall},
		"replaces, none":  {prepare: begun, call: replaceCall},
	},
	"renew":   {"quiet": {prepare: begun, call: renewCall}, "followed": {prepare: followed, call: renewCall}},
	"dismiss": {"left": {prepare: longGone, call: dismissCall, hint: true}},
	"leave":   {"empty": {prepare: begun, call: leaveCall}, "stale entry": {prepare: staleHeld, call: leaveCall}},
	"lost": {
		"holds a task": {prepare: silent, call: lostCall},
		// That it was there is only logged.
		"holds nothing": {prepare: silentWithout, call: lostCall, hint: true},
	},
	"turn": {"under a session": {prepare: openedAndBegun, call: sessionClaimCall}},
	"move": {
		"report under a session": {prepare: sessionClaimed, call: workerCall(statemachine.Report)},
		"drop":                   {prepare: sessionClaimed, call: dropCall},
	},
	"note":  {"progress": {prepare: claimed, call: progressCall}},
	"index": {"unwatched": {prepare: unwatched, call: reindexCall, hint: true}},
	"order": {"drain": {prepare: begun, call: orderCall(task.CommandDrain)}, "none": {prepare: drained, call: orderCall(task.NoCommand)}},
	"token": {"pass on": {call: passOnCall}},
	"halt": {
		"no session": {call: interruptCall},
		"a session":  {prepare: func(t *testing.T, sp *storetest.Space) { sp.Register(t, "w") }, call: interruptCall},
	},
	"follow": {"running": {prepare: sessionClaimed, call: followCall}},
	"chunks": {"first": {prepare: claimed, call: chunksCall}, "further": {prepare: chunksBefore, call: chunksCall}},
}

// allLosses are the scenarios of one script.
func allLosses(script string) map[string]loss {
	all := map[string]loss{}
	for _, table := range []map[string]map[string]loss{scriptLosses, sessionLosses, heldLosses, limitLosses, keyLosses, handlingLosses, indexLosses, planLosses, retentionLosses,
		blobLosses, tokenLosses, recordLosses, changeLosses} {
		maps.Copy(all, table[script])
	}
	return all
}

func begun(t *testing.T, sp *storetest.Space) {
	t.Helper()
	sp.Register(t, "w")
}

func beginCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) { return st.Register(t.Context(), storetest.Registration("w")) }
}

// session is the session of worker w as the registry knows it.
func session(t *testing.T, st *store.Store) fleet.Session {
	t.Helper()
	w, _, err := st.Worker(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	return fleet.Session{Name: "w", ID: w.ID, Incarnation: w.Incarnation}
}

func replaceCall(t *testing.T, st *store.Store) step {
	t.Helper()
	r := storetest.Registration("w")
	r.Replaces, r.Identity = session(t, st).Incarnation, "another"
	return func() (any, error) { return st.Register(t.Context(), r) }
}

func left(t *testing.T, sp *storetest.Space) {
	t.Helper()
	begun(t, sp)
	leaveCall(t, sp.Store).must(t)
}

func leaveCall(t *testing.T, st *store.Store) step {
	t.Helper()
	w := session(t, st)
	return done(func() error { return st.Leave(t.Context(), w) })
}

// longGone has left a week ago.
func longGone(t *testing.T, sp *storetest.Space) {
	t.Helper()
	left(t, sp)
	sp.Raw.HSet(t.Context(), sp.Key("worker:w"), "ended", noon.Add(-7*24*3600*second).Text())
}

func dismissCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) {
		n, _, err := st.DismissWorkers(t.Context(), 24*time.Hour, 0)
		return n, err
	}
}

func drained(t *testing.T, sp *storetest.Space) {
	t.Helper()
	begun(t, sp)
	orderCall(task.CommandDrain)(t, sp.Store).must(t)
}

func leftDrained(t *testing.T, sp *storetest.Space) {
	t.Helper()
	drained(t, sp)
	leaveCall(t, sp.Store).must(t)
}

func openedAndBegun(t *testing.T, sp *storetest.Space) {
	t.Helper()
	opened(3)(t, sp)
	begun(t, sp)
}

func sessionClaimCall(t *testing.T, st *store.Store) step {
	t.Helper()
	w := session(t, st)
	return func() (any, error) {
		return st.Claim(t.Context(), tasks.ClaimRequest{
			Worker: "w", Request: "c", Candidates: storetest.Free(task.Bucket{}), Max: 2, Ahead: 1, Incarnation: w.Incarnation, Node: "n",
			MaxThreads: task.Unlimited,
		})
	}
}

// sessionClaimed runs task 1 under a session of w.
func sessionClaimed(t *testing.T, sp *storetest.Space) {
	t.Helper()
	opened(1)(t, sp)
	begun(t, sp)
	sessionClaimCall(t, sp.Store).must(t)
}

// silent holds task 1 and has not been heard of for more than a lease.
func silent(t *testing.T, sp *storetest.Space) {
	t.Helper()
	sessionClaimed(t, sp)
	sp.SetClock(t, noon.Add(16*second))
}

func silentWithout(t *testing.T, sp *storetest.Space) {
	t.Helper()
	begun(t, sp)
	sp.SetClock(t, noon.Add(16*second))
}

// judged is silent, and a server has said so.
func judged(t *testing.T, sp *storetest.Space) {
	t.Helper()
	silent(t, sp)
	lostCall(t, sp.Store).must(t)
}

func judgedWithout(t *testing.T, sp *storetest.Space) {
	t.Helper()
	silentWithout(t, sp)
	lostCall(t, sp.Store).must(t)
}

// judgedStale lists a task that w does not run, after the verdict.
func judgedStale(t *testing.T, sp *storetest.Space) {
	t.Helper()
	judgedWithout(t, sp)
	sp.Raw.SAdd(t.Context(), sp.Key("held:w"), "7")
}

// staleHeld lists a task that w does not run.
func staleHeld(t *testing.T, sp *storetest.Space) {
	t.Helper()
	opened(1)(t, sp)
	begun(t, sp)
	sp.Raw.SAdd(t.Context(), sp.Key("held:w"), "1", "7")
}

// unwatched is a running task that no lease knows of, by hand.
func unwatched(t *testing.T, sp *storetest.Space) {
	t.Helper()
	sessionClaimed(t, sp)
	sp.Raw.Del(t.Context(), sp.Key("held:w"), sp.Key("lease"))
}

func lostCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) {
		l, err := st.Lost(t.Context(), 10, fleet.Watched{})
		ids := []int64{}
		for i := range l.Workers {
			for n := range l.Workers[i].Tasks {
				ids = append(ids, l.Workers[i].Tasks[n].ID)
			}
		}
		return []any{len(l.Workers), ids, l.Next, l.Now}, err
	}
}
