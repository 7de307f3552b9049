package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/fleet"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/redistest"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// oddNames are all legal somewhere, and none may break a key, a script, a
// pattern, a log line or a bucket.
var oddNames = []string{
	"plain", "{a}", "a b", "a:b", "a*?[x]^\\", "ü😀", "a%3Ab", `quote"'`, "-1", "0", "task", strings.Repeat("x", 128),
}

// TestOddNamespaces: a whole life and a flush in each, with a neighbour whose
// keys a careless pattern would match.
func TestOddNamespaces(t *testing.T) {
	t.Parallel()
	for _, odd := range oddNames {
		t.Run(odd, func(t *testing.T) {
			t.Parallel()
			sp := named(t, odd)
			id := bring(t, sp, statemachine.Succeeded)
			must(t, sp, id, statemachine.Manager, statemachine.Archive)
			if in := sp.Sets(t, id); !slices.Equal(in, []statemachine.State{statemachine.Archived}) {
				t.Errorf("listed in %v", in)
			}
			if got := sp.Task(t, id).Fields["namespace"]; got != sp.Namespace {
				t.Errorf("namespace %q", got)
			}
			neighbour := strings.NewReplacer("*", "Y", "?", "Z", "[x]", "x").Replace(sp.Namespace) + "n:open"
			sp.Raw.Set(t.Context(), neighbour, "1", 0)
			if n, err := sp.Store.Flush(t.Context()); err != nil || n < 5 {
				t.Errorf("flushed %d keys, error %v", n, err)
			}
			if left := dump(t, sp); len(left) != 1 || left["meta"] == "" {
				t.Errorf("left: %v", left)
			}
			if sp.Raw.Exists(t.Context(), neighbour).Val() != 1 {
				t.Errorf("the neighbour's key %s is gone", neighbour)
			}
		})
	}
}

// named is a space whose namespace ends in an odd way; braces come first, as
// Redis Cluster wants them.
func named(t *testing.T, odd string) *storetest.Space {
	t.Helper()
	sp := storetest.New(t)
	sp.Where.Username, sp.Where.Password = "", "" // the limited user's patterns are for plain names
	if sp.Namespace = redistest.Namespace(t) + odd; odd == "{a}" {
		sp.Namespace = "{" + redistest.Namespace(t) + "}"
	}
	sp.Store = sp.Dial(t)
	return sp
}

// TestOddBuckets: a task whose bucket another client has named in an odd way comes
// into that bucket, comes back from Redis in it, and only who asks for that bucket gets it.
func TestOddBuckets(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	for i, odd := range oddNames {
		b := task.Bucket{Queue: odd, Env: odd, Labels: odd + "=1", Class: odd, Priority: i - 3}
		id := sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "input", odd) }))[0]
		sp.Raw.HSet(t.Context(), sp.Key(fmt.Sprint("task:", id)), append(b.Fields(), "program", odd))
		sp.Raw.Del(t.Context(), sp.Key("ready:default:::0"))
		found, _, err := sp.Store.Inspect(t.Context(), []int64{id})
		if err != nil || found[0].InBucket {
			t.Fatalf("%+v, error %v", found, err)
		}
		if changed, err := sp.Store.Reindex(t.Context(), &found[0].Task, 0); !changed || err != nil {
			t.Fatal(changed, err)
		}
		for of, want := range map[task.Bucket]int{b: 0, {Queue: b.Queue, Env: b.Env, Labels: b.Labels, Priority: b.Priority}: 1} {
			x := upkeep.Index{Kind: upkeep.IndexReady, Of: of.Name()}
			sp.Raw.ZAdd(t.Context(), sp.Key("ready:"+x.Of), redis.Z{Member: tasks.Member(id)})
			if gone, err := sp.Store.Unlist(t.Context(), x, []string{tasks.Member(id)}); err != nil || len(gone) != want {
				t.Errorf("%q: %d entries do not belong into %s, want %d; error %v", odd, len(gone), x.Of, want, err)
			}
		}
		all, err := sp.Store.Buckets(t.Context())
		if err != nil || !slices.Contains(all, b) {
			t.Errorf("%q: not among %+v, error %v", odd, all, err)
		}
		if _, err := sp.Store.Queue(t.Context(), odd); err != nil {
			t.Errorf("%q: a queue that only a task names: %v", odd, err)
		}
		r, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{
			Worker: odd, Request: conn.NewToken(), Candidates: storetest.Free(b), Max: 2, Node: odd, MaxThreads: task.AtMost(1),
		})
		if err != nil || len(r.Tasks) != 1 || r.Tasks[0].Task.ID != id || r.Tasks[0].Bucket != b || r.Tasks[0].Spec.Input != odd {
			t.Errorf("%q: claimed %+v, error %v", odd, r.Tasks, err)
		}
		task := sp.Task(t, id)
		if task.Bucket != b || task.Program != odd || task.Fields["0:worker"] != odd || strings.Contains(task.Fields["log"], "\n") {
			t.Errorf("%q: %+v", odd, task.Fields)
		}
		sp.Report(t, &r.Tasks[0], "", "")
		for _, set := range []string{"busy:queue:" + odd, "busy:node:" + odd, fmt.Sprintf("busy:both:%d:%s:%s", len(odd), odd, odd)} {
			if sp.Raw.Exists(t.Context(), sp.Key(set)).Val() != 0 {
				t.Errorf("%q: %s is left", odd, set)
			}
		}
	}
	if n := len(sp.Claim(t, "w", 9)); n != 0 {
		t.Errorf("%d tasks in the default bucket", n)
	}
}

// TestNamesApart: no two pairs of queue and node share a key.
func TestNamesApart(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	for _, pair := range [][2]string{{"a", "b:c"}, {"a:b", "c"}, {"1:a", "b"}, {"a", "1:b"}} {
		node, queue := pair[0], pair[1]
		sp.Open(t, storetest.Spec())
		sp.Raw.HSet(t.Context(), sp.Key("task:1"), "queue", queue)
		sp.Raw.ZAdd(t.Context(), sp.Key("ready:"+task.Bucket{Queue: queue}.Name()), redis.Z{Score: 1, Member: "a1"})
		q := task.ParseQueue(queue, nil)
		q.MaxThreads = task.AtMost(1)
		r, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{
			Worker: "w", Request: conn.NewToken(), Max: 1, Node: node, MaxThreads: task.Unlimited,
			Candidates: []task.Candidate{{Queue: q, Buckets: []task.Bucket{{Queue: queue}}}},
		})
		if err != nil || len(r.Tasks) != 1 {
			t.Errorf("node %s, queue %s: claimed %+v, error %v", node, queue, r, err)
		}
		// The next pair claims the same id, as if it were another.
		sp.Raw.HSet(t.Context(), sp.Key("task:1"), "state", "open")
		sp.Raw.ZAdd(t.Context(), sp.Key("open"), redis.Z{Score: 1, Member: "1"})
	}
}

// TestOddWorkers: a worker of any name has a session, holds, is followed, and is lost.
func TestOddWorkers(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.SetClock(t, noon)
	for _, odd := range oddNames {
		w := sp.Register(t, odd)
		id := sp.Open(t, storetest.Spec())[0]
		if got := sp.ClaimUnder(t, w, 1); len(got) != 1 {
			t.Errorf("%q: claimed %+v", odd, got)
		}
		if err := sp.Store.Follow(t.Context(), id, time.Minute, true); err != nil {
			t.Error(err)
		}
		if r := sp.Renew(t, w); len(r.Followed) != 1 || r.Followed[0].ID != id {
			t.Errorf("%q: renewed %+v, want %d followed", odd, r, id)
		}
	}
	all, _, err := sp.Store.Workers(t.Context())
	if err != nil || len(all) != len(oddNames) {
		t.Errorf("workers %+v, error %v", all, err)
	}
	sp.SetClock(t, noon.Add(16*second))
	l, err := sp.Store.Lost(t.Context(), 9, fleet.Watched{})
	if err != nil || len(l.Workers) != len(oddNames) {
		t.Fatalf("lost %+v, error %v", l, err)
	}
	for i := range l.Workers {
		if len(l.Workers[i].Tasks) != 1 || l.Workers[i].Tasks[0].Worker != l.Workers[i].Name {
			t.Errorf("lost %+v", l.Workers[i])
		}
		must(t, sp, l.Workers[i].Tasks[0].ID, statemachine.Server, statemachine.Lose)
	}
	if l, err = sp.Store.Lost(t.Context(), 9, fleet.Watched{}); err != nil || len(l.Workers) != len(oddNames) || len(l.Workers[0].Tasks) != 0 {
		t.Errorf("lost %+v, error %v", l, err)
	}
}
