package store_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// ahead is a request for one task and three ahead.
func ahead(change func(*tasks.ClaimRequest)) tasks.ClaimRequest {
	req := tasks.ClaimRequest{
		Worker: "w", Node: "n", Request: conn.NewToken(), Max: 4, Ahead: 3,
		Candidates: storetest.Free(task.Bucket{}), MaxThreads: task.Unlimited,
	}
	if change != nil {
		change(&req)
	}
	return req
}

// What is claimed ahead is counted by no limit, needs no resource and has no plan.
func TestClaimAhead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*tasks.ClaimRequest)
		bucket task.Bucket
		want   int
	}{
		"no limit":        {nil, task.Bucket{}, 4},
		"none asked for":  {func(r *tasks.ClaimRequest) { r.Ahead = 0 }, task.Bucket{}, 4},
		"of a queue":      {func(r *tasks.ClaimRequest) { r.Candidates[0].Queue.Threads = task.AtMost(9) }, task.Bucket{}, 1},
		"of it on a node": {func(r *tasks.ClaimRequest) { r.Candidates[0].Queue.MaxThreads = task.AtMost(9) }, task.Bucket{}, 1},
		"of the node":     {func(r *tasks.ClaimRequest) { r.MaxThreads = task.AtMost(9) }, task.Bucket{}, 1},
		"resources": {func(r *tasks.ClaimRequest) { r.Resources = task.Resources{"gpu": 9} },
			task.Bucket{Resources: "gpu=1"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sp := storetest.New(t)
			spec := storetest.Spec(func(d *task.Definition) { storetest.SetBucket(d, c.bucket) })
			sp.Open(t, spec, spec, spec, spec, spec)
			req := ahead(c.change)
			req.Candidates[0].Buckets = []task.Bucket{c.bucket}
			got, err := sp.Store.Claim(t.Context(), req)
			if err != nil || len(got.Tasks) != c.want || !got.More {
				t.Errorf("claimed %d tasks, want %d, more %v: %v", len(got.Tasks), c.want, got.More, err)
			}
			again, err := sp.Store.Claim(t.Context(), req)
			if err != nil || !slices.EqualFunc(again.Tasks, got.Tasks, func(a, b tasks.Claimed) bool { return a.Task.Current == b.Task.Current }) {
				t.Errorf("asked again: %d tasks: %v", len(again.Tasks), err)
			}
		})
	}
}

// Tasks of plans end what is claimed ahead, and stay where they are. From queues with limits, others go first.
func TestClaimAheadUpTo(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	limited, plain := task.Bucket{Queue: "limited"}, task.Bucket{Queue: "plain"}
	for _, b := range []task.Bucket{limited, plain} {
		sp.AddQueue(t, task.ParseQueue(b.Queue, nil))
	}
	in := func(b task.Bucket) task.Definition {
		return storetest.Spec(func(d *task.Definition) { storetest.SetBucket(d, b) })
	}
	ids := sp.Open(t, in(limited), in(limited), in(plain), in(plain), in(plain))
	if err := sp.Raw.HSet(t.Context(), sp.Key("task:")+strconv.FormatInt(ids[3], 10), tasks.PlanField, "7").Err(); err != nil {
		t.Fatal(err)
	}
	req := ahead(func(r *tasks.ClaimRequest) {
		r.Candidates = storetest.Free(limited, plain)
		r.Candidates[0].Queue.Threads = task.AtMost(9)
	})
	got, err := sp.Store.Claim(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	claimed := make([]int64, len(got.Tasks))
	for i := range got.Tasks {
		claimed[i] = got.Tasks[i].Task.ID
	}
	if want := []int64{ids[0], ids[2]}; !slices.Equal(claimed, want) {
		t.Errorf("claimed %v, want %v", claimed, want)
	}
	inState(t, sp, ids[3], statemachine.Open)
	for i, want := range []int64{ids[3], ids[4]} {
		req := ahead(func(r *tasks.ClaimRequest) { r.Candidates, r.Max, r.Ahead = storetest.Free(plain), 1, 0 })
		if got, err = sp.Store.Claim(t.Context(), req); err != nil || len(got.Tasks) != 1 || got.Tasks[0].Task.ID != want {
			t.Errorf("%d: claimed %+v, want %d: %v", i, got.Tasks, want, err)
		}
	}
}

// More ahead than in all cannot be.
func TestClaimAheadRefused(t *testing.T) {
	t.Parallel()
	sp := storetest.New(t)
	for _, n := range []int{-1, 5} {
		if _, err := sp.Store.Claim(t.Context(), ahead(func(r *tasks.ClaimRequest) { r.Ahead = n })); err == nil {
			t.Errorf("claims %d of 4 ahead", n)
		}
	}
}
