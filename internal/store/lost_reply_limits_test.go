package store_test

import (
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// limitLosses are the scenarios of queues, nodes, limits and stops; they join
// scriptLosses.
var limitLosses = map[string]map[string]loss{
	"turn": {
		"fleet full":      {prepare: queued("threads", "1"), call: limitedCall(9)},
		"node full":       {prepare: queued("maxthreads", "1"), call: limitedCall(9)},
		"resource taken":  {prepare: queued("", ""), call: limitedCall(9)},
		"several places":  {prepare: queued("threads", "4"), call: limitedCall(1)},
		"a probe":         {prepare: gated, call: limitedCall(9)},
		"nothing allowed": {prepare: queued("threads", "0"), call: limitedCall(9), hint: true},
	},
	"move":  {"place freed": {prepare: crowded, call: workerCall(statemachine.Report)}},
	"renew": {"to stop": {prepare: asked, call: renewCall}},
	"stop": {
		"running":  {prepare: sessionClaimed, call: stopCall},
		"executed": {prepare: reported(""), call: stopCall},
	},
	"record": {
		"add":    {call: addCall},
		"set":    {prepare: queued("threads", "1"), call: setCall("threads", "2")},
		"drop":   {prepare: queued("default_priority", "1"), call: setCall("default_priority", "")},
		"remove": {prepare: emptied, call: removeCall},
		"node":   {call: nodeCall},
	},
	"judge": {
		"set aside": {prepare: failing, call: judgeCall(fleet.Verdict{Quarantined: noon, TrialAt: noon.Add(60 * second), Reason: "why"})},
		"forgiven":  {prepare: failing, call: judgeCall(fleet.Verdict{Forgive: true})},
	},
	"recount": {"strangers": {prepare: miscounted, call: recountCall, hint: true}},
	"forget":  {"a node": {prepare: failing, call: forgetCall}},
	"remind":  {"overdue": {prepare: unnoticed, call: remindCall}},
	"prune":   {"empty": {prepare: emptied, call: pruneCall, hint: true}},
	"index":   {"not counted": {prepare: uncounted, call: reindexCall, hint: true}},
}

// gpu is a bucket of queue q whose tasks ask two of the three that node n offers.
var gpu = task.Bucket{Queue: "q", Resources: "gpu=2"}

// queued has a queue q with one attribute, and five tasks, three of which want a gpu.
func queued(key, value string) func(*testing.T, *storetest.Space) {
	return func(t *testing.T, sp *storetest.Space) {
		t.Helper()
		q := task.ParseQueue("q", nil)
		if key != "" {
			if err := q.Set(key, value); err != nil {
				t.Fatal(err)
			}
		}
		sp.AddQueue(t, q)
		plain := storetest.Spec(func(s *task.Definition) { storetest.Set(s, "queue", "q") })
		greedy := storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, gpu) })
		specs := []task.Definition{greedy, plain, greedy, plain, greedy}
		if _, err := sp.Store.Open(t.Context(), tasks.OpenRequest{Key: "q", Specs: specs}); err != nil {
			t.Fatal(err)
		}
	}
}

// limitedCall claims on node n from queue q by the rules in force.
func limitedCall(most int) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		req := byRules(t, st, "w", "n")
		req.Request, req.Max = "c", most
		return func() (any, error) { return st.Claim(t.Context(), req) }
	}
}

// byRules claims for a worker on a node that offers three gpus, and has room for three rounds.
func byRules(t testing.TB, st *store.Store, worker, node string) tasks.ClaimRequest {
	t.Helper()
	return byRulesIn(t, st, worker, node, "")
}

// byRulesIn does so for a worker with an env.
func byRulesIn(t testing.TB, st *store.Store, worker, node, env string) tasks.ClaimRequest {
	t.Helper()
	rules, err := st.Rules(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	offer := task.Offer{Worker: worker, Node: node, Env: env, Resources: task.Resources{"gpu": 3}}
	return tasks.ClaimRequest{
		Worker: worker, Request: conn.NewToken(), Candidates: task.Candidates(rules.Buckets, rules.Queues, offer),
		Rules: rules.Version, Known: rules.Known, Max: 1, Node: node, MaxThreads: task.AtMost(3), Resources: offer.Resources,
	}
}

func gated(t *testing.T, sp *storetest.Space) {
	t.Helper()
	queued("", "")(t, sp)
	if err := sp.Store.PublishQuarantine(t.Context(), "on"); err != nil {
		t.Fatal(err)
	}
	sp.Raw.HSet(t.Context(), sp.Key("meta"), "server_seen", "1") // not by the clock of the test
	sp.Raw.HSet(t.Context(), sp.Key("node:n"), "quarantined", "1", "trial_at", "2")
}

// crowded has all places in use, task 1 with a gpu, and somebody who waits.
func crowded(t *testing.T, sp *storetest.Space) {
	t.Helper()
	queued("threads", "2")(t, sp)
	limitedCall(9)(t, sp.Store).must(t)
	req := byRules(t, sp.Store, "v", "n")
	if r, err := sp.Store.Claim(t.Context(), req); err != nil || len(r.Full) != 1 {
		t.Fatalf("claimed %+v, error %v", r, err)
	}
}

func stopCall(t *testing.T, st *store.Store) step {
	t.Helper()
	task, err := st.Task(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := statemachine.Decide(&task.Task, statemachine.Occurrence{Event: statemachine.Cancel, Actor: statemachine.Manager}, noon)
	if err != nil {
		t.Fatal(err)
	}
	order := tasks.Commit{
		Move: m, Writer: "m", Lines: []tasks.Line{{At: noon, Text: "cancel"}}, Fields: []string{"cancel_reason", "why"},
	}
	return done(func() error {
		out, err := st.AskStop(t.Context(), order)
		if err != nil {
			return err
		}
		return out[0].Err
	})
}

func asked(t *testing.T, sp *storetest.Space) {
	t.Helper()
	sessionClaimed(t, sp)
	stopCall(t, sp.Store).must(t)
}

func addCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return done(func() error { return st.AddQueue(t.Context(), task.ParseQueue("q", nil)) })
}

func setCall(key, value string) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		return func() (any, error) {
			return st.SetQueue(t.Context(), "q", func(q *task.QueueSpec) error { return q.Set(key, value) })
		}
	}
}

// emptied has a queue q with a bucket in which nothing waits.
func emptied(t *testing.T, sp *storetest.Space) {
	t.Helper()
	queued("", "")(t, sp)
	for id := range int64(5) {
		clerkCallOn(statemachine.Manager, statemachine.Cancel, id+1)(t, sp.Store).must(t)
	}
}

func removeCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return done(func() error { return st.RemoveQueue(t.Context(), "q") })
}

func nodeCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) {
		return st.SetNode(t.Context(), "n", func(n *task.NodeRecord) error { return n.Set("maxthreads", "2") })
	}
}

func failing(t *testing.T, sp *storetest.Space) {
	t.Helper()
	sp.Raw.HSet(t.Context(), sp.Key("node:n"), "run", "5", "era", "1")
	sp.Raw.SAdd(t.Context(), sp.Key("suspects"), "n")
}

func judgeCall(v fleet.Verdict) func(*testing.T, *store.Store) step {
	return func(t *testing.T, st *store.Store) step {
		t.Helper()
		nodes, err := st.SuspectNodes(t.Context(), "n")
		if err != nil {
			t.Fatal(err)
		}
		v := v
		v.Node = nodes[0]
		return func() (any, error) { return st.Judge(t.Context(), v) }
	}
}

// miscounted counts rounds that do not run, while a worker waits for the place.
func miscounted(t *testing.T, sp *storetest.Space) {
	t.Helper()
	crowded(t, sp)
	ctx := t.Context()
	sp.Raw.SAdd(ctx, sp.Key("nodes"), "n")
	for _, key := range []string{"busy:queue:q", "busy:node:n", "busy:both:1:n:q"} {
		sp.Raw.SAdd(ctx, sp.Key(key), "5", "77")
	}
	sp.Raw.HSet(ctx, sp.Key("used:n"), "77", "gpu:1[2]")
}

func recountCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) { return st.Recount(t.Context()) }
}

func forgetCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return done(func() error { return st.RemoveNode(t.Context(), "n") })
}

// unnoticed is task 1, of which nobody will hear any more.
func unnoticed(t *testing.T, sp *storetest.Space) {
	t.Helper()
	opened(1)(t, sp)
	sp.Raw.Del(t.Context(), sp.Key("wake:"+task.Bucket{}.Name()))
}

func remindCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) { return st.Remind(t.Context(), 0) }
}

func pruneCall(t *testing.T, st *store.Store) step {
	t.Helper()
	names, err := st.EmptyBuckets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return func() (any, error) { return st.Prune(t.Context(), names) }
}

// uncounted runs task 1, and nothing counts it.
func uncounted(t *testing.T, sp *storetest.Space) {
	t.Helper()
	crowded(t, sp)
	sp.Raw.Del(t.Context(), sp.Key("busy:queue:q"), sp.Key("busy:node:n"), sp.Key("busy:both:1:n:q"), sp.Key("used:n"))
}
