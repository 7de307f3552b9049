package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/store/blame"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A dry claim writes nothing, and says of each of many tasks whether the claim takes it, on the way past one that is no
// longer open and one that is damaged.
func exerciseDryClaim(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, noon)
	newest := task.ParseQueue("newest", nil)
	newest.Order, newest.Threads = task.Lifo, task.AtMost(40)
	sp.AddQueue(t, newest)
	buckets := []task.Bucket{{}, {Queue: "newest"}}
	for i := range 60 {
		sp.SetClock(t, noon.Add(statemachine.Duration(i)))
		sp.Open(t, storetest.Spec(), storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, buckets[1]) }))
	}
	sp.Raw.ZRem(t.Context(), sp.Key("open"), "5")
	sp.Raw.HDel(t.Context(), sp.Key("task:7"), "program")
	sp.Raw.HDel(t.Context(), sp.Key("task:116"), "program")
	claim := tasks.ClaimRequest{Worker: "w", Request: "r", Candidates: task.Candidates(buckets, []task.QueueSpec{newest}, task.Offer{}), Max: 90}
	var claims []tasks.DryClaim
	for id := int64(1); id <= 120; id++ {
		b := buckets[1-id%2]
		claims = append(claims, tasks.DryClaim{Claim: claim, Queue: b.QueueName(), Task: id, Bucket: b})
	}
	before := dump(t, sp)
	found, err := sp.Store.DryClaims(t.Context(), claims)
	if err != nil {
		t.Fatal(err)
	}
	if after := dump(t, sp); !cmp.Equal(before, after) {
		t.Errorf("a dry claim writes: %s", cmp.Diff(before, after))
	}
	for id, want := range map[int64]tasks.Overtaking{
		9:   {ID: 1, Before: 4, Due: 120, Queues: 2},
		110: {ID: 120, Before: 5, Due: 120, Queues: 2},
	} {
		if h := found[id-1]; h.Next != want || h.Threads != (tasks.Places{Limited: id%2 == 0, Left: 40 * (1 - id%2)}) || h.MaxThreads.Limited {
			t.Errorf("task %d: %+v, want %+v before it", id, h, want)
		}
	}
	r, err := sp.Store.Claim(t.Context(), claim)
	if err != nil || len(r.Tasks) != 90 {
		t.Fatalf("claimed %d tasks, %v", len(r.Tasks), err)
	}
	got := claimedIDs(r.Tasks)
	for i := range found {
		if id := int64(i + 1); found[i].Claimed != slices.Contains(got, id) {
			t.Errorf("task %d: said %v, claimed %v", id, found[i].Claimed, !found[i].Claimed)
		}
	}
}

// What keeps a task: limits, the gate of the node, what is taken of its resources, and who they are kept for.
func exerciseHindrances(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, noon)
	small, large := task.Bucket{Resources: "gpu=1"}, task.Bucket{Resources: "gpu=2", Priority: 1}
	for _, b := range []task.Bucket{small, small, large} {
		sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, b) }))
	}
	q := task.ParseQueue(task.DefaultQueue, nil)
	q.Threads, q.MaxThreads = task.AtMost(1), task.AtMost(5)
	claim := tasks.ClaimRequest{
		Worker: "w", Request: "r", Candidates: task.Candidates([]task.Bucket{small}, []task.QueueSpec{q}, task.Offer{Resources: task.Resources{"gpu": 2}}),
		Node: "n", MaxThreads: task.AtMost(2), Resources: task.Resources{"gpu": 2}, Max: 1,
	}
	if r, err := sp.Store.Claim(t.Context(), claim); err != nil || len(r.Tasks) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	sp.Raw.HSet(t.Context(), sp.Key("meta"), "quarantine", "on")
	sp.Raw.HSet(t.Context(), sp.Key("node:n"), "run", blame.GateRun)
	all := []task.Bucket{small, large}
	claim.Candidates = task.Candidates(all, []task.QueueSpec{q}, task.Offer{Resources: task.Resources{"gpu": 2}})
	want := tasks.Hindrance{
		Threads: tasks.Places{Limited: true}, MaxThreads: tasks.Places{Limited: true, Left: 4}, NodeCap: tasks.Places{Limited: true, Left: 1},
		Gated: true, Kept: "gpu", Keeper: 3,
	}
	found, err := sp.Store.DryClaims(t.Context(), []tasks.DryClaim{
		{Claim: claim, Queue: task.DefaultQueue, Task: 2, Bucket: small},
		{Claim: claim, Queue: task.DefaultQueue, Task: 9, Bucket: large, At: noon.Add(second)}, // it would be the last of its bucket
		{Claim: claim, Queue: task.DefaultQueue},
	})
	if err != nil || !cmp.Equal(found[0], want) {
		t.Errorf("%v, %s", err, cmp.Diff(want, found[0]))
	}
	want.Taken, want.Kept, want.Keeper, want.Next = []tasks.Taken{{Name: "gpu", Asked: 2, Used: 1}}, "", 0, tasks.Overtaking{ID: 3, Priority: 1, Rank: 1, Before: 1, Due: 2, Queues: 1}
	if !cmp.Equal(found[1], want) {
		t.Error(cmp.Diff(want, found[1]))
	}
	want.Taken, want.Next = nil, tasks.Overtaking{}
	if !cmp.Equal(found[2], want) {
		t.Error(cmp.Diff(want, found[2]))
	}
	aging := task.ParseQueue("aging", nil)
	aging.Aging = task.Seconds(2 * time.Second)
	sp.AddQueue(t, aging)
	old, urgent := task.Bucket{Queue: "aging"}, task.Bucket{Queue: "aging", Priority: 1}
	claim.Candidates = task.Candidates([]task.Bucket{old, urgent}, []task.QueueSpec{aging}, task.Offer{})
	for i, b := range []task.Bucket{old, old, urgent} {
		sp.SetClock(t, noon.Add(statemachine.Duration(4*i)*second))
		sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, b) }))
	}
	found, err = sp.Store.DryClaims(t.Context(), []tasks.DryClaim{
		{Claim: claim, Queue: "aging", Task: 4, Bucket: old}, {Claim: claim, Queue: "aging", Task: 5, Bucket: old},
		{Claim: claim, Queue: "aging", Task: 6, Bucket: urgent},
	})
	next := tasks.Overtaking{ID: 4, Rank: 4, Before: 1, Due: 3, Queues: 1}
	last := next
	last.Before = 2
	if err != nil || found[0].Next.ID != 0 || found[1].Next != next || found[2].Next != last {
		t.Errorf("%v, what is before: %+v", err, found)
	}
	claim.Candidates = nil
	if _, err := sp.Store.DryClaims(t.Context(), []tasks.DryClaim{{Claim: claim, Queue: "q"}}); err == nil {
		t.Error("a dry claim without its queue is accepted")
	}
}
