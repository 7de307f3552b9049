package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// TestRemoveQueueInUse: a queue stays as long as one of its tasks has not ended,
// also if no bucket and no count knows of it.
func TestRemoveQueueInUse(t *testing.T) {
	t.Parallel()
	in := func(s *task.Definition) { storetest.Set(s, "queue", "lic") }
	for name, prepare := range map[string]func(*testing.T, *storetest.Space){
		"blocked": func(t *testing.T, sp *storetest.Space) {
			t.Helper()
			sp.Open(t, storetest.Spec(in, func(s *task.Definition) { storetest.Set(s, "hold", "wait") }))
		},
		"executed": func(t *testing.T, sp *storetest.Space) {
			t.Helper()
			sp.Open(t, storetest.Spec(in))
			sp.Report(t, newIdler(t, sp, "w", "n").claim(), "", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			q := task.ParseQueue("lic", nil)
			q.Threads = task.AtMost(1)
			sp.AddQueue(t, q)
			prepare(t, sp)
			if err := sp.Store.RemoveQueue(t.Context(), "lic"); !errors.Is(err, task.ErrQueueInUse) {
				t.Errorf("removed: %v", err)
			}
			if info, err := sp.Store.Queue(t.Context(), "lic"); err != nil || info.Threads != task.AtMost(1) {
				t.Errorf("%+v, error %v", info.QueueSpec, err)
			}
			event := statemachine.Cancel
			if name == "executed" {
				must(t, sp, 1, statemachine.Server, statemachine.Settle)
			} else {
				must(t, sp, 1, statemachine.Manager, event)
			}
			if err := sp.Store.RemoveQueue(t.Context(), "lic"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRemovedQueueLeavesNothing: not even of very many buckets, nor of those who
// were turned away.
func TestRemovedQueueLeavesNothing(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.AddQueue(t, task.ParseQueue("lic", nil))
	names := make([]any, 9000)
	for i := range names {
		names[i] = task.Bucket{Queue: "lic", Labels: fmt.Sprint("job=", i)}.Name()
	}
	sp.Raw.SAdd(t.Context(), sp.Key("buckets"), names...)
	sp.Raw.RPush(t.Context(), sp.Key("wake:"+names[8999].(string)), "1")
	sp.Raw.RPush(t.Context(), sp.Key("wake_queue:lic"), "1")
	sp.Raw.HSet(t.Context(), sp.Key("full"), "q:lic", "1")
	if err := sp.Store.RemoveQueue(t.Context(), "lic"); err != nil {
		t.Fatal(err)
	}
	if left := sp.Raw.Keys(t.Context(), storetest.Pattern(sp.Namespace)).Val(); !slices.Equal(left, []string{sp.Key("meta")}) {
		t.Errorf("left: %v", left)
	}
}

// TestPrunedBucketLeavesNoWakeUp: the wake-up that the last task left goes with it.
func TestPrunedBucketLeavesNoWakeUp(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	spec := storetest.Spec(func(s *task.Definition) { storetest.Set(s, "labels", "job=1") })
	sp.Open(t, spec)
	r, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{Worker: "w", Request: "r", Candidates: storetest.Free(spec.Bucket()), Max: 1})
	if err != nil || len(r.Tasks) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if n, err := sp.Store.Prune(t.Context(), []string{spec.Bucket().Name()}); n != 1 || err != nil {
		t.Errorf("pruned %d, error %v", n, err)
	}
	if left := sp.Raw.Exists(t.Context(), sp.Key("wake:"+spec.Bucket().Name())).Val(); left != 0 {
		t.Error("the wake list is left")
	}
}

// TestRemoveNode: a node goes with all that is known of it, once nobody works there.
func TestRemoveNode(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	s, err := sp.Store.Register(t.Context(), task.Registration{Name: "w", Node: "n", Identity: "i"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sp.Store.SetNode(t.Context(), "n", func(n *task.NodeRecord) error { return n.Set("maxthreads", "1") }); err != nil {
		t.Fatal(err)
	}
	sp.Open(t, storetest.Spec(), storetest.Spec())
	held := newIdler(t, sp, "v", "n").claim()
	refused := func(what string) {
		t.Helper()
		if err := sp.Store.RemoveNode(t.Context(), "n"); !errors.Is(err, task.ErrNodeInUse) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("a round and a lease")
	sp.Report(t, held, "", "")
	refused("a lease")
	if err := sp.Store.Leave(t.Context(), s.Session); err != nil {
		t.Fatal(err)
	}
	sp.Raw.SAdd(t.Context(), sp.Key("suspects"), "n")
	sp.Raw.HSet(t.Context(), sp.Key("full"), "n:n", "1")
	before, err := sp.Store.Rules(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // again: the same
		if err := sp.Store.RemoveNode(t.Context(), "n"); err != nil {
			t.Error(err)
		}
	}
	after, err := sp.Store.Rules(t.Context(), "n")
	if err != nil || after.Version != before.Version+1 || after.Node.MaxThreads != "" {
		t.Errorf("rules %+v, error %v", after, err)
	}
	if nodes, _, err := sp.Store.Nodes(t.Context()); len(nodes) != 0 || err != nil {
		t.Errorf("nodes %+v, error %v", nodes, err)
	}
	if n := sp.Raw.Exists(t.Context(), sp.Key("node:n"), sp.Key("suspects"), sp.Key("full"), sp.Key("wake_node:n")).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}
