package store_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// A01, A02: the sixteen fields of the original; ids without gaps under ten
// concurrent clients.
func exerciseOpen(t *testing.T, sp *storetest.Space) {
	sp.Open(t, storetest.Spec())
	tk := sp.Task(t, 1)
	want := map[string]string{
		"program": "p", "source": "s", "input": "1 2", "id": "1", "start_after": "0", "end_before": "inf", "timeout": "inf",
		"max_fails": "0", "max_timeouts": "0", "state": "open", "round": "0", "fails": "0", "timeouts": "0", "log": "",
		"namespace": sp.Namespace, "0:open": tk.Fields["0:open"],
	}
	if !maps.Equal(tk.Fields, want) {
		t.Errorf("fields %v, want %v", tk.Fields, want)
	}
	now, err := sp.Store.Now(t.Context())
	if age := now.Sub(storetest.Stamps(tk, 0)["open"]); err != nil || age < 0 || age > 10*statemachine.Second {
		t.Errorf("0:open is %s s old, error %v", age.Text(), err)
	}
	if score := sp.Raw.ZScore(t.Context(), sp.Key("open"), "1").Val(); score != 0 {
		t.Errorf("score %v, want 0", score)
	}
	var wg sync.WaitGroup
	for range 10 {
		st := sp.Dial(t)
		wg.Go(func() {
			for range 20 {
				if _, err := st.Open(t.Context(), tasks.OpenRequest{Key: conn.NewToken(), Specs: []task.Definition{storetest.Spec(), storetest.Spec()}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	ids, err := sp.Store.IDs(t.Context(), statemachine.Open, 0, 1000, false)
	slices.Sort(ids)
	if err != nil || len(ids) != 401 || ids[400] != 401 || len(slices.Compact(ids)) != 401 {
		t.Errorf("%d ids, error %v, want 1 to 401", len(ids), err)
	}
	if from, last, err := sp.Store.Watermark(t.Context()); from != last || err != nil {
		t.Errorf("the watermark is at %d of %d: %v", from, last, err)
	}
}

func exerciseOpenAgain(t *testing.T, sp *storetest.Space) {
	req := tasks.OpenRequest{Key: "mine", Specs: []task.Definition{storetest.Spec(), storetest.Spec()}}
	first, err := sp.Store.Open(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	again, err := sp.Store.Open(t.Context(), req)
	if err != nil || !slices.Equal(first, again) {
		t.Errorf("ids %v, then %v, error %v", first, again, err)
	}
	if last, _ := sp.Store.LastID(t.Context()); last != 2 {
		t.Errorf("%d tasks, want 2", last)
	}
}

func exerciseOpenRefused(t *testing.T, sp *storetest.Space) {
	for _, n := range []int{0, tasks.MaxOpen + 1} {
		if _, err := sp.Store.Open(t.Context(), tasks.OpenRequest{Key: "n", Specs: make([]task.Definition, n)}); err == nil {
			t.Errorf("%d tasks are accepted", n)
		}
	}
	if last, err := sp.Store.LastID(t.Context()); last != 0 || err != nil {
		t.Errorf("%d tasks were opened, error %v", last, err)
	}
}

// Arguments with blanks and empty ones travel as JSON.
func exerciseArgv(t *testing.T, sp *storetest.Space) {
	argv := []string{"a b", "", `"`, "ü"}
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.SetArgv(s, argv...); storetest.Set(s, "input", "") }), storetest.Spec(func(s *task.Definition) { storetest.Set(s, "max_losses", "7", "fail_on", "exit") }),
		storetest.Spec(func(s *task.Definition) { storetest.Set(s, "archive", "at_once", "fail_on", "exit") }))
	if got := task.Decode(1, sp.Task(t, 1).Fields).Argv; !slices.Equal(got, argv) {
		t.Errorf("argv %q", got)
	}
	c := sp.Claim(t, "w", 3)
	if !c[2].Task.AtOnce || c[2].Spec.FailOn != "exit" {
		t.Errorf("claimed %+v", c[2])
	}
	if !slices.Equal(c[0].Spec.Argv, argv) || c[1].Spec.Argv != nil || c[1].Spec.FailOn != "exit" || c[1].Task.MaxLosses != 7 {
		t.Errorf("claimed %+v", c)
	}
	if fmt.Sprint(sp.Task(t, 2).MaxLosses) != "7" {
		t.Error("max_losses is lost")
	}
}

// A task that was held and freed before its start_after still waits for it.
func exerciseHeldEarly(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, noon)
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "start_after", noon.Add(3*second).Text()) }))
	moveOn(t, sp, 1, statemachine.Hold, statemachine.Manager)
	if left := sp.Raw.ZCard(t.Context(), sp.Key("ready:default:::0")).Val(); left != 0 {
		t.Error("a blocked task waits in its bucket")
	}
	moveOn(t, sp, 1, statemachine.Unblock, statemachine.Manager)
	if got := sp.Claim(t, "w", 1); len(got) != 0 {
		t.Errorf("claimed %v before its start", claimedIDs(got))
	}
	sp.SetClock(t, noon.Add(3*second))
	if got := sp.Claim(t, "w", 1); len(got) != 1 {
		t.Error("not claimed at its start")
	}
}

// A counter behind its tasks, after a careless restore, overwrites none.
func exerciseIDsTaken(t *testing.T, sp *storetest.Space) {
	sp.Open(t, storetest.Spec(), storetest.Spec())
	before := sp.Task(t, 2).Fields
	sp.Raw.Set(t.Context(), sp.Key("task_id"), 0, 0)
	other := storetest.Spec(func(s *task.Definition) { storetest.Set(s, "input", "other") })
	if ids, err := sp.Store.Open(t.Context(), tasks.OpenRequest{Key: "k", Specs: []task.Definition{other, other}}); err == nil {
		t.Errorf("opened %v over what was there", ids)
	}
	if after := sp.Task(t, 2).Fields; !maps.Equal(before, after) || sp.Raw.Get(t.Context(), sp.Key("task_id")).Val() != "0" {
		t.Errorf("fields %v, before %v", after, before)
	}
	sp.Raw.Set(t.Context(), sp.Key("task_id"), 2, 0)
	if ids := sp.Open(t, other); ids[0] != 3 {
		t.Errorf("opened %v, want 3", ids)
	}
}

// A04, A06: in the order of start_after, also of those that are past when the task
// is opened; without one it is the time of the opening. Of equals first in, first
// out, also where "10" < "9".
func exerciseClaimOrder(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, noon)
	start := func(at statemachine.Time) task.Definition {
		return storetest.Spec(func(s *task.Definition) { storetest.Set(s, "start_after", at.Text()) })
	}
	sp.Open(t, start(noon.Add(3*second)), start(noon.Add(second)), start(noon.Add(2*second)))
	sp.SetClock(t, noon.Add(4*second))
	for range 7 {
		sp.Open(t, storetest.Spec())
	}
	sp.Open(t, start(noon.Add(-second)), start(3e6), start(noon.Add(-2*second)), start(1))
	got := claimedIDs(sp.Claim(t, "w", 20))
	if want := []int64{14, 12, 13, 11, 2, 3, 1, 4, 5, 6, 7, 8, 9, 10}; !slices.Equal(got, want) {
		t.Errorf("claimed %v, want %v", got, want)
	}
	tk := sp.Task(t, 2)
	score := sp.Raw.ZScore(t.Context(), sp.Key("running"), "2").Val()
	if fmt.Sprintf("%.6f", score) != tk.Fields["0:running"] || tk.Fields["0:worker"] != "w" || tk.Fields["rev"] != "1" {
		t.Errorf("score %f, fields %v", score, tk.Fields)
	}
	checkState(t, sp, 2, statemachine.Running)
}

// A repeated request gets the same tasks, as far as they are still held.
func exerciseClaimAgain(t *testing.T, sp *storetest.Space) {
	sp.Open(t, storetest.Spec(), storetest.Spec(), storetest.Spec())
	req := tasks.ClaimRequest{Worker: "w", Request: "r1", Candidates: storetest.Free(task.Bucket{}), Max: 2, Ahead: 1}
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
	if err != nil || len(again.Tasks) != 1 || again.Tasks[0].Task.ID != 2 {
		t.Errorf("after a report: %+v, error %v", again.Tasks, err)
	}
	if n := len(sp.Claim(t, "w", 5)); n != 1 {
		t.Errorf("%d tasks were left, want 1", n)
	}
}

// A05, A15: not before start_after, not after end_before; the answer says when.
func exerciseClaimNotDue(t *testing.T, sp *storetest.Space) {
	sp.SetClock(t, noon)
	sp.Open(t, storetest.Spec(func(s *task.Definition) { storetest.Set(s, "start_after", noon.Add(3*second).Text()) }),
		storetest.Spec(func(s *task.Definition) { storetest.Set(s, "end_before", noon.Add(-1).Text()) }),
		storetest.Spec(func(s *task.Definition) { storetest.Set(s, "end_before", noon.Text()) }))
	r, err := sp.Store.Claim(t.Context(), tasks.ClaimRequest{Worker: "w", Request: "a", Candidates: storetest.Free(task.Bucket{}), Max: 9})
	if err != nil || !slices.Equal(claimedIDs(r.Tasks), []int64{3}) || r.Next != noon.Add(3*second) || r.Now != noon || r.More {
		t.Errorf("claimed %+v, error %v", r, err)
	}
	sp.SetClock(t, noon.Add(3*second))
	if got := claimedIDs(sp.Claim(t, "w", 9)); !slices.Equal(got, []int64{1}) {
		t.Errorf("claimed %v, want 1", got)
	}
	checkState(t, sp, 2, statemachine.Open)
}

// Queues take turns; within one the higher priority goes first; what is not
// named is not touched.
func exerciseBuckets(t *testing.T, sp *storetest.Space) {
	in := func(b task.Bucket) task.Definition {
		return storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, b) })
	}
	odd := task.Bucket{Queue: "_a.b-c", Env: "java", Labels: "gpu=ä", Priority: -3, Resources: "gpu=1", Class: "A::B"}
	urgent, other := task.Bucket{Priority: 5}, task.Bucket{Queue: "other"}
	sp.AddQueue(t, task.ParseQueue(odd.Queue, nil))
	sp.AddQueue(t, task.ParseQueue(other.Queue, nil))
	sp.Open(t, storetest.Spec(), in(urgent), in(odd), in(other))
	all, err := sp.Store.Buckets(t.Context())
	if err != nil || len(all) != 4 || !slices.Contains(all, odd) {
		t.Fatalf("buckets %+v, error %v", all, err)
	}
	claim := func(req tasks.ClaimRequest) tasks.ClaimReply {
		t.Helper()
		req.Worker, req.Request, req.MaxThreads = "w", conn.NewToken(), task.Unlimited
		r, err := sp.Store.Claim(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := claim(tasks.ClaimRequest{Candidates: storetest.Free(task.Bucket{}, urgent, other), Max: 9})
	if !slices.Equal(claimedIDs(r.Tasks), []int64{2, 4, 1}) || r.Tasks[0].Bucket != urgent {
		t.Errorf("claimed %+v", r.Tasks)
	}
	r = claim(tasks.ClaimRequest{Candidates: storetest.Free(odd), Max: 1, Node: "n", Resources: task.Resources{"gpu": 1}})
	if len(r.Tasks) != 1 || r.Tasks[0].Bucket != odd || r.Tasks[0].Spec.Class != odd.Class {
		t.Errorf("claimed %+v", r.Tasks)
	}
}

// A wake-up goes to one waiter and is passed on while more is due.
func exerciseWakeUps(t *testing.T, sp *storetest.Space) {
	wait := tasks.WaitFor{Worker: "w", Candidates: storetest.Free(task.Bucket{})}
	woken := func() bool {
		t.Helper()
		by, err := storetest.Wait(t.Context(), sp.Store, wait, 50*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if by != "" && string(by) != sp.Key("wake:"+task.Bucket{}.Name()) {
			t.Errorf("woken by %q", by)
		}
		return by != ""
	}
	if woken() {
		t.Error("woken for nothing")
	}
	sp.Open(t, storetest.Spec(), storetest.Spec(), storetest.Spec(func(s *task.Definition) { storetest.Set(s, "start_after", "4000000000") }))
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
