package store_test

import (
	"fmt"
	"testing"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// liveUnderLease makes what a worker's session and its watchers leave.
func liveUnderLease(t *testing.T, sp *storetest.Space) {
	t.Helper()
	if err := sp.Store.PublishLease(t.Context(), 15*second); err != nil {
		t.Fatal(err)
	}
	sessionClaimed(t, sp)
	errandOpen(t, sp)
	for _, call := range []func(*testing.T, *store.Store) step{
		orderCall(task.CommandDrain), renewCall, progressCall, followCall, chunksCall, interruptCall, answerCall,
	} {
		call(t, sp.Store).must(t)
	}
}

// liveInQueues makes what queues, limits, keys and stops leave: rounds under way with a
// resource, one with a stop request, a worker that waits for a place, and a node that is judged.
func liveInQueues(t *testing.T, sp *storetest.Space) {
	t.Helper()
	if err := sp.Store.PublishQuarantine(t.Context(), "on"); err != nil {
		t.Fatal(err)
	}
	queued("threads", "3")(t, sp)
	liveOnNode(t, sp)
	setCall("default_priority", "3")(t, sp.Store).must(t)
	nodeCall(t, sp.Store).must(t)
	failing(t, sp)
	judgeCall(fleet.Verdict{Quarantined: noon, Trials: 1, TrialAt: noon.Add(second), Reason: "why"})(t, sp.Store).must(t)
	old := bring(t, sp, statemachine.Succeeded)
	held := storetest.Spec(func(s *task.Definition) {
		storetest.Set(s, "max_faults", "2", "charge", "program", "hold", "why", "key", "k")
		storetest.Set(s, "retry_delay", "1", "retry_backoff", "2", "retry_max_delay", "9", "retry_jitter", "0.5")
		storetest.Set(s, "retry_exit_codes", "1", "fatal_exit_codes", "2")
	})
	openAll(t, sp, held, retryOf(old), replayOf(old))
	w := sp.Register(t, "stopper")
	sp.Raw.Del(t.Context(), sp.Key("node:node-1")) // it has failed, too
	id := sp.ClaimUnder(t, w, 1)[0].Task.ID
	m := decideOn(t, sp, id, statemachine.Manager, statemachine.Cancel)
	order := tasks.Commit{Move: m, Writer: "m", Fields: []string{"cancel_reason", "why"}}
	if _, err := sp.Store.AskStop(t.Context(), order); err != nil {
		t.Fatal(err)
	}
}

// liveOnNode fills node n, ends a round there as a failure, and fills it again.
func liveOnNode(t *testing.T, sp *storetest.Space) {
	t.Helper()
	claim := func(worker string) []tasks.Claimed {
		req := byRules(t, sp.Store, worker, "n")
		req.Max = 9
		r, err := sp.Store.Claim(t.Context(), req)
		if err != nil || len(r.Tasks) == 0 || len(r.Full) == 0 {
			t.Fatalf("claimed %+v, error %v", r, err)
		}
		return r.Tasks
	}
	for _, c := range claim("v") {
		if c.Resources != nil {
			continue
		}
		m := decideOn(t, sp, c.Task.ID, statemachine.Worker, statemachine.Report)
		out, err := sp.Store.Apply(t.Context(), tasks.Commit{Move: m, Writer: "v", Node: tasks.NodeBad})
		if err != nil || out[0].Err != nil {
			t.Fatal(out, err)
		}
		break
	}
	claim("u")
}

// decideOn decides about a task as it is.
func decideOn(t *testing.T, sp *storetest.Space, id int64, actor statemachine.Actor, event statemachine.Event) statemachine.Move {
	t.Helper()
	task := sp.Task(t, id)
	m, err := statemachine.Decide(&task.Task, statemachine.Occurrence{
		Event: event, Actor: actor, Claim: task.Current.Claim, Round: task.Round,
	}, noon)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// liveFully makes every key there is: tasks that succeed, fail once, are set
// aside, wait, and what daemons write about themselves.
func liveFully(t *testing.T, sp *storetest.Space) {
	t.Helper()
	sp.SetClock(t, noon)
	registerCall(false)(t, sp.Store).must(t)
	beginHandlingCall("i")(t, sp.Store).must(t)
	liveUnderLease(t, sp)
	if err := sp.Store.PublishGrace(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	id := bring(t, sp, statemachine.Succeeded)
	must(t, sp, id, statemachine.Manager, statemachine.Archive)
	id = bring(t, sp, statemachine.Running)
	must(t, sp, id, statemachine.Server, statemachine.Lose)
	sp.Claim(t, "w", 1)
	id = sp.Open(t, storetest.Spec())[0]
	sp.Raw.HSet(t.Context(), sp.Key(fmt.Sprint("task:", id)), "fails", "many")
	found, now, err := sp.Store.Inspect(t.Context(), []int64{id})
	if err != nil {
		t.Fatal(err)
	}
	if done, err := sp.Store.DeadLetter(t.Context(), &found[0], now); !done || err != nil {
		t.Fatalf("%v, %v", done, err)
	}
	haveBlob(t, sp)
	putFilesCall(t, sp.Store).must(t)
	grantCall(t, sp.Store).must(t)
	entered(2)(t, sp)
	if err := sp.Store.ShortenChanges(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	liveInQueues(t, sp)
	sp.Open(t, storetest.Spec(func(s *task.Definition) {
		storetest.SetArgv(s, "a")
		storetest.Set(s, "fail_on", "exit", "max_losses", "7", "end_before", noon.Add(second).Text())
		storetest.SetBucket(s, task.Bucket{Queue: "q", Env: "e", Labels: "l=1", Priority: 1})
	}))
	bring(t, sp, statemachine.Executed)
	if err := sp.Store.PublishEvents(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	epochCall(1_000_000)(t, sp.Store).must(t)
	beginHandlingCall("j")(t, sp.Store).must(t) // what is handled ends with an epoch
}
