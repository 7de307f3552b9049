package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/redistest"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/storetest"
	"github.com/tdf-go/tdf/statemachine"
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
			if left := dump(t, sp); len(left) != 0 {
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

// TestOddBuckets: a task comes back from Redis in the bucket it was opened in,
// and only who asks for that bucket gets it.
func TestOddBuckets(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	for i, odd := range oddNames {
		b := store.Bucket{Queue: odd, Env: odd, Labels: odd + "=1", Priority: i - 3}
		id := sp.Open(t, storetest.Spec(func(s *store.Spec) { s.Bucket, s.Program, s.Input = b, odd, odd }))[0]
		all, err := sp.Store.Buckets(t.Context())
		if err != nil || !slices.Contains(all, b) {
			t.Errorf("%q: not among %+v, error %v", odd, all, err)
		}
		r, err := sp.Store.Claim(t.Context(), store.ClaimRequest{
			Worker: odd, Request: store.NewToken(), Buckets: []store.Bucket{b}, Max: 2,
		})
		if err != nil || len(r.Tasks) != 1 || r.Tasks[0].ID != id || r.Tasks[0].Bucket != b || r.Tasks[0].Input != odd {
			t.Errorf("%q: claimed %+v, error %v", odd, r.Tasks, err)
		}
		task := sp.Task(t, id)
		if task.Bucket != b || task.Program != odd || task.Fields["0:worker"] != odd || strings.Contains(task.Log, "\n") {
			t.Errorf("%q: %+v", odd, task.Fields)
		}
	}
	if n := len(sp.Claim(t, "w", 9)); n != 0 {
		t.Errorf("%d tasks in the default bucket", n)
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
	l, err := sp.Store.Lost(t.Context(), 9)
	if err != nil || len(l.Workers) != len(oddNames) {
		t.Fatalf("lost %+v, error %v", l, err)
	}
	for i := range l.Workers {
		if len(l.Workers[i].Tasks) != 1 || l.Workers[i].Tasks[0].Worker != l.Workers[i].Name {
			t.Errorf("lost %+v", l.Workers[i])
		}
		must(t, sp, l.Workers[i].Tasks[0].ID, statemachine.Server, statemachine.Lose)
	}
	if l, err = sp.Store.Lost(t.Context(), 9); err != nil || len(l.Workers) != len(oddNames) || len(l.Workers[0].Tasks) != 0 {
		t.Errorf("lost %+v, error %v", l, err)
	}
}
