package store_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/internal/store/upkeep"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// indexLosses are the scenarios of taking strays out of indices; they join
// scriptLosses.
var indexLosses = map[string]map[string]loss{
	"unlist": {"a stray": {prepare: strayed, call: unlistCall, hint: true}},
}

var defaultBucket = upkeep.Index{Kind: upkeep.IndexReady, Of: task.DefaultBucketName}

// strayed has task 1 running, and still in line.
func strayed(t *testing.T, sp *storetest.Space) {
	t.Helper()
	sessionClaimed(t, sp)
	sp.Raw.ZAdd(t.Context(), sp.Key("ready:default:::0"), redis.Z{Score: 1, Member: "a1"})
}

func unlistCall(t *testing.T, st *store.Store) step {
	t.Helper()
	return func() (any, error) { return st.Unlist(t.Context(), defaultBucket, []string{"a1"}) }
}

// TestStrays: what belongs to an index stays, what does not is told, and taken out
// on request alone.
func TestStrays(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sessionClaimed(t, sp) // task 1 is held by w
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "end_before", "9000000000") }))
	ctx := t.Context()
	sp.Raw.ZAdd(ctx, sp.Key("ready:default:::0"), redis.Z{Score: 1, Member: "a1"}, redis.Z{Score: 1, Member: "b2"}, redis.Z{Score: 1, Member: "a77"})
	sp.Raw.ZAdd(ctx, sp.Key("due"), redis.Z{Score: 1, Member: "77"}, redis.Z{Score: 1, Member: "x"})
	sp.Raw.SAdd(ctx, sp.Key("held:w"), "2")
	sp.Raw.SAdd(ctx, sp.Key("stop:w"), "1")
	sp.Raw.ZAdd(ctx, sp.Key("failed"), redis.Z{Score: 1, Member: "x"})
	for x, want := range map[upkeep.Index][]string{
		defaultBucket:                                 {"a1", "a77", "b2"},
		{Kind: upkeep.IndexDue}:                       {"77", "x"},
		{Kind: upkeep.IndexHeld, Of: "w"}:             {"2"},
		{Kind: upkeep.IndexStop, Of: "w"}:             {"1"},
		{Kind: upkeep.IndexState, Of: "failed"}:       {"x"},
		{Kind: upkeep.IndexState, Of: "running"}:      nil,
		{Kind: upkeep.IndexReady, Of: "default:::77"}: nil,
	} {
		members, _, err := sp.Store.Members(ctx, x, 0)
		if err != nil {
			t.Fatal(x, err)
		}
		asked := slices.Concat(members, []string{"not there", "a999"})
		looked, err := sp.Store.Strays(ctx, x, asked)
		slices.Sort(looked)
		if err != nil || !slices.Equal(looked, want) {
			t.Errorf("%s: %v, %v, want %v", x, looked, err, want)
		}
		took, err := sp.Store.Unlist(ctx, x, asked)
		slices.Sort(took)
		if err != nil || !slices.Equal(took, want) {
			t.Errorf("%s: took %v, %v, want %v", x, took, err, want)
		}
		left, _, err := sp.Store.Members(ctx, x, 0)
		if err != nil || len(left) != len(members)-len(want) {
			t.Errorf("%s: left %v of %v, %v", x, left, members, err)
		}
	}
	if _, err := sp.Store.Strays(ctx, upkeep.Index{Kind: upkeep.IndexReady, Of: "no bucket"}, []string{"a1"}); err == nil {
		t.Error("a bucket of no name")
	}
}

// TestIndices: due, those of archived tasks, each bucket on the list, and two of each worker.
func TestIndices(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sessionClaimed(t, sp)
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "priority", strconv.Itoa(7)) }))
	all, err := sp.Store.Indices(t.Context())
	var names []string
	for _, x := range all {
		names = append(names, x.String())
	}
	want := []string{"due"}
	for _, outcome := range statemachine.Outcomes() {
		want = append(want, "archived:"+string(outcome))
	}
	want = append(want, "ready:default:::0", "ready:default:::7", "held:w", "stop:w")
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("%v, %v, want %v", names, err, want)
	}
}

func TestCensus(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sessionClaimed(t, sp)
	sp.Open(t, storetest.Spec())
	sp.Raw.HSet(t.Context(), sp.Key("set_aside"), "9", "{}")
	c, err := sp.Store.Census(t.Context())
	if err != nil || c.Opened != 2 || c.Listed[statemachine.Running] != 1 || c.Listed[statemachine.Open] != 1 || !slices.Equal(c.Aside, []int64{9}) {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestReindexListsBucket: a bucket that is not on the list is found by nobody, though
// it has the task.
func TestReindexListsBucket(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "priority", strconv.Itoa(7)) }))
	sp.Raw.SRem(t.Context(), sp.Key("buckets"), "default:::7")
	if changed := reindexCall(t, sp.Store).must(t); changed != true || !sp.Raw.SIsMember(t.Context(), sp.Key("buckets"), "default:::7").Val() {
		t.Errorf("changed: %v", changed)
	}
}
