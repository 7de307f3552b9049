package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/internal/store"
	"github.com/tdf-go/tdf/statemachine"
)

const second = statemachine.Second

// noon is where tests with a set clock begin.
const noon = statemachine.Time(1_800_000_000_000_000)

// A04, A06: in the order of start_after, also of those that are past when the task
// is opened; without one it is the time of the opening. Of equals first in, first
// out, also where "10" < "9".
func exerciseClaimOrder(t *testing.T, sp *Space) {
	sp.SetClock(t, noon)
	start := func(at statemachine.Time) store.Spec { return Spec(func(s *store.Spec) { s.StartAfter = at.Text() }) }
	sp.Open(t, start(noon.Add(3*second)), start(noon.Add(second)), start(noon.Add(2*second)))
	sp.SetClock(t, noon.Add(4*second))
	for range 7 {
		sp.Open(t, Spec())
	}
	sp.Open(t, start(noon.Add(-second)), start(3e6), start(noon.Add(-2*second)), start(1))
	got := claimedIDs(sp.Claim(t, "w", 20))
	if want := []int64{14, 12, 13, 11, 2, 3, 1, 4, 5, 6, 7, 8, 9, 10}; !slices.Equal(got, want) {
		t.Errorf("claimed %v, want %v", got, want)
	}
	task := sp.Task(t, 2)
	score := sp.Raw.ZScore(t.Context(), sp.Key("running"), "2").Val()
	if fmt.Sprintf("%.6f", score) != task.Fields["0:running"] || task.Fields["0:worker"] != "w" || task.Fields["rev"] != "1" {
		t.Errorf("score %f, fields %v", score, task.Fields)
	}
	sp.state(t, 2, statemachine.Running)
}

// A repeated request gets the same tasks, as far as they are still held.
func exerciseClaimAgain(t *testing.T, sp *Space) {
	sp.Open(t, Spec(), Spec(), Spec())
	req := store.ClaimRequest{Worker: "w", Request: "r1", Turns: route.Free(store.Bucket{}), Max: 2}
	first, err := sp.Store.Claim(t.Context(), req)
	if err != nil || len(first.Tasks) != 2 {
		t.Fatalf("claimed %+v, error %v", first, err)
	}
	again, err := sp.Store.Claim(t.Context(), req)
	if err != nil || len(again.Tasks) != 2 {
		t.Fatalf("claimed again %+v, error %v", again, err)
	}
	for i := range again.Tasks {
		a, b := again.Tasks[i].Task, first.Tasks[i].Task
		if a.ID != b.ID || a.Rev != b.Rev || a.Current.Claim != b.Current.Claim || a.Current.Running != b.Current.Running {
			t.Errorf("claimed %+v, then %+v", b, a)
		}
	}
	sp.Report(t, &first.Tasks[0], "", "")
	again, err = sp.Store.Claim(t.Context(), req)
	if err != nil || len(again.Tasks) != 1 || again.Tasks[0].ID != 2 {
		t.Errorf("after a report: %+v, error %v", again.Tasks, err)
	}
	if n := len(sp.Claim(t, "w", 5)); n != 1 {
		t.Errorf("%d tasks were left, want 1", n)
	}
}

// A05, A15: not before start_after, not after end_before; the answer says when.
func exerciseClaimNotDue(t *testing.T, sp *Space) {
	sp.SetClock(t, noon)
	sp.Open(t, Spec(func(s *store.Spec) { s.StartAfter = noon.Add(3 * second).Text() }),
		Spec(func(s *store.Spec) { s.EndBefore = noon.Add(-1).Text() }),
		Spec(func(s *store.Spec) { s.EndBefore = noon.Text() }))
	r, err := sp.Store.Claim(t.Context(), store.ClaimRequest{Worker: "w", Request: "a", Turns: route.Free(store.Bucket{}), Max: 9})
	if err != nil || !slices.Equal(claimedIDs(r.Tasks), []int64{3}) || r.Next != noon.Add(3*second) || r.Now != noon || r.More {
		t.Errorf("claimed %+v, error %v", r, err)
	}
	sp.SetClock(t, noon.Add(3*second))
	if got := claimedIDs(sp.Claim(t, "w", 9)); !slices.Equal(got, []int64{1}) {
		t.Errorf("claimed %v, want 1", got)
	}
	sp.state(t, 2, statemachine.Open)
}

// Queues take turns; within one the higher priority goes first; what is not
// named is not touched.
func exerciseBuckets(t *testing.T, sp *Space) {
	in := func(b store.Bucket) store.Spec { return Spec(func(s *store.Spec) { s.Bucket = b }) }
	odd := store.Bucket{Queue: "_a.b-c", Env: "java", Labels: "gpu=ä", Priority: -3, Resources: "gpu=1"}
	urgent, other := store.Bucket{Priority: 5}, store.Bucket{Queue: "other"}
	sp.AddQueue(t, route.NewQueue(odd.Queue))
	sp.AddQueue(t, route.NewQueue(other.Queue))
	sp.Open(t, Spec(), in(urgent), in(odd), in(other))
	all, err := sp.Store.Buckets(t.Context())
	if err != nil || len(all) != 4 || !slices.Contains(all, odd) {
		t.Fatalf("buckets %+v, error %v", all, err)
	}
	claim := func(req store.ClaimRequest) store.ClaimReply {
		t.Helper()
		req.Worker, req.Request, req.MaxThreads = "w", store.NewToken(), route.NoLimit
		r, err := sp.Store.Claim(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := claim(store.ClaimRequest{Turns: route.Free(store.Bucket{}, urgent, other), Max: 9})
	if !slices.Equal(claimedIDs(r.Tasks), []int64{2, 4, 1}) || r.Tasks[0].Bucket != urgent {
		t.Errorf("claimed %+v", r.Tasks)
	}
	r = claim(store.ClaimRequest{Turns: route.Free(odd), Max: 1, Node: "n", Resources: route.Resources{"gpu": 1}})
	if len(r.Tasks) != 1 || r.Tasks[0].Bucket != odd {
		t.Errorf("claimed %+v", r.Tasks)
	}
}

// A wake-up goes to one waiter and is passed on while more is due.
func exerciseWakeUps(t *testing.T, sp *Space) {
	wait := store.WaitFor{Worker: "w", Turns: route.Free(store.Bucket{})}
	woken := func() bool {
		t.Helper()
		by, err := sp.Store.WaitWork(t.Context(), wait, 50*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if by != "" && string(by) != sp.Key("wake:"+store.Bucket{}.Name()) {
			t.Errorf("woken by %q", by)
		}
		return by != ""
	}
	if woken() {
		t.Error("woken for nothing")
	}
	sp.Open(t, Spec(), Spec(), Spec(func(s *store.Spec) { s.StartAfter = "4000000000" }))
	if !woken() || woken() {
		t.Error("want one wake-up for one batch")
	}
	sp.Claim(t, "w1", 1)
	if !woken() {
		t.Error("the claim that left a due task did not pass the wake-up on")
	}
	last := sp.Claim(t, "w2", 1)
	if woken() {
		t.Error("woken for a task that is not due")
	}
	if ok, _ := sp.Store.WaitServer(t.Context(), 50*time.Millisecond); ok {
		t.Error("the server is woken by a claim")
	}
	sp.Report(t, &last[0], "", "")
	if ok, err := sp.Store.WaitServer(t.Context(), 5*time.Second); !ok || err != nil {
		t.Errorf("the server is not woken by a report: %v", err)
	}
}
