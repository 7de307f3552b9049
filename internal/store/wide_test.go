package store_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// wideFleet are workers of four slots whose claims go by the queues q and r.
type wideFleet struct {
	*storetest.Space
	turns   []task.Candidate
	gathers map[string]string
}

func newWideFleet(t *testing.T, queues ...task.QueueSpec) *wideFleet {
	t.Helper()
	f := &wideFleet{Space: storetest.New(t), gathers: map[string]string{}}
	var buckets []task.Bucket
	for _, q := range queues {
		f.AddQueue(t, q)
		buckets = append(buckets, task.Bucket{Queue: q.Name}, task.Bucket{Queue: q.Name, Resources: "cpus=2"},
			task.Bucket{Queue: q.Name, Resources: "cpus=4"}, task.Bucket{Queue: q.Name, Resources: "cpus=4,gpu=1"})
	}
	f.turns = task.Candidates(buckets, queues, task.Offer{Slots: 4, Resources: task.Resources{"gpu": 1}})
	return f
}

// open opens a task that asks for these resources.
func (f *wideFleet) open(t *testing.T, queue, resources string) int64 {
	t.Helper()
	b := task.Bucket{Queue: queue, Resources: resources}
	return f.Open(t, storetest.Spec(func(s *task.Definition) { storetest.SetBucket(s, b) }))[0]
}

func (f *wideFleet) request(worker string, free int) tasks.ClaimRequest {
	return tasks.ClaimRequest{
		Worker: worker, Node: "n-" + worker, Request: conn.NewToken(), Candidates: f.turns, Max: free, Gathers: f.gathers[worker],
		Resources: task.Resources{"gpu": 1}, MaxThreads: task.Unlimited,
	}
}

// claim claims for a worker with that many free slots, as the worker does.
func (f *wideFleet) claim(t *testing.T, worker string, free int) tasks.ClaimReply {
	t.Helper()
	r, err := f.Store.Claim(t.Context(), f.request(worker, free))
	if err != nil {
		t.Fatal(err)
	}
	f.gathers[worker] = r.Gathers
	return r
}

// expect checks what a claim got, and whether it gathers slots.
func (f *wideFleet) expect(t *testing.T, worker string, free int, gathers string, want ...int64) {
	t.Helper()
	r := f.claim(t, worker, free)
	if got := ids(r.Tasks); !slices.Equal(got, want) || r.Gathers != gathers {
		t.Fatalf("worker %s with %d free slots gets %v and gathers %q, want %v and %q", worker, free, got, r.Gathers, want, gathers)
	}
}

// A claim gets as many tasks as its slots hold, and the record says how many each has.
func TestClaimOfWideTasks(t *testing.T) {
	t.Parallel()
	f := newWideFleet(t, task.ParseQueue("q", nil))
	a, b, c := f.open(t, "q", "cpus=2"), f.open(t, "q", ""), f.open(t, "q", "cpus=2")
	r := f.claim(t, "w", 4)
	if got := ids(r.Tasks); !slices.Equal(got, []int64{a, b}) || r.Gathers != "q" || !r.Wider || r.More {
		t.Fatalf("claimed %v, gathers %q, wider %v, more %v", got, r.Gathers, r.Wider, r.More)
	}
	if got := r.Tasks[0].Resources[task.CPUs]; got.Count != 2 || got.IDs != nil {
		t.Errorf("it has %+v", got)
	}
	if got := f.Task(t, a).Fields["0:resources"]; got != "cpus:2[]" {
		t.Errorf("its record says %q", got)
	}
	f.expect(t, "v", 4, "", c)
	full := f.open(t, "q", "cpus=4,gpu=1")
	f.expect(t, "u", 4, "", full)
	if got := f.Task(t, full).Fields["0:resources"]; got != "cpus:4[] gpu:1[0]" {
		t.Errorf("its record says %q", got)
	}
}

// A worker whose free slots do not suffice keeps them for the wide task that is next, from all queues; others go on with what comes after
// it, and one that has room for it takes it.
func TestWideTaskIsNotOvertaken(t *testing.T) {
	t.Parallel()
	f := newWideFleet(t, task.ParseQueue("q", nil), task.ParseQueue("r", nil))
	wide := f.open(t, "q", "cpus=4")
	var small []int64
	for range 6 {
		small = append(small, f.open(t, "r", ""))
	}
	f.gathers["w"] = "q" // its claim before met the task in its turn
	f.expect(t, "w", 1, "q")
	f.expect(t, "v", 1, "", small[0])
	f.expect(t, "w", 2, "q")
	f.expect(t, "v", 2, "", small[1], small[2])
	f.expect(t, "w", 4, "", wide)
	f.expect(t, "w", 1, "", small[3])
}

// Of two workers the one with more free slots keeps them. The other one goes on.
func TestWiderWorkerGathers(t *testing.T) {
	t.Parallel()
	f := newWideFleet(t, task.ParseQueue("q", nil))
	wide, small := f.open(t, "q", "cpus=4"), f.open(t, "q", "")
	f.expect(t, "w", 1, "q")
	f.expect(t, "v", 3, "q")
	f.expect(t, "w", 1, "", small)
	f.expect(t, "u", 4, "", wide)
	f.expect(t, "v", 3, "")
}

// As many workers gather as there are wide tasks. One that is silent no longer counts.
func TestAWorkerGathersForEachWideTask(t *testing.T) {
	t.Parallel()
	f := newWideFleet(t, task.ParseQueue("q", nil))
	f.SetClock(t, noon)
	f.open(t, "q", "cpus=4")
	f.expect(t, "w", 2, "q")
	f.expect(t, "v", 2, "")
	f.open(t, "q", "cpus=4")
	f.expect(t, "v", 2, "q")
	f.expect(t, "u", 2, "")
	f.SetClock(t, noon.Add(11*statemachine.Second))
	f.expect(t, "u", 2, "q")
}

// A limit that lets none of its tasks run keeps no slots, and neither does one that lacks another resource.
func TestWideTaskThatCannotRunKeepsNoSlots(t *testing.T) {
	t.Parallel()
	limited := task.ParseQueue("q", nil)
	limited.Threads = task.AtMost(1)
	f := newWideFleet(t, limited, task.ParseQueue("r", nil))
	first := f.open(t, "q", "")
	f.expect(t, "w", 4, "", first)
	f.open(t, "q", "cpus=4")
	small := f.open(t, "r", "")
	f.expect(t, "v", 1, "", small)
	taken := f.open(t, "r", "cpus=4,gpu=1")
	f.expect(t, "v", 4, "", taken)
	f.open(t, "r", "cpus=4,gpu=1")
	after := f.open(t, "r", "")
	f.expect(t, "v", 1, "", after)
}

// A worker that has no use for what is due, since a limit of its node or too few free slots keep it from that, is not woken for it again
// and again.
func TestWideTaskWakesNobodyInVain(t *testing.T) {
	t.Parallel()
	limited := task.ParseQueue("q", nil)
	limited.MaxThreads = task.AtMost(1)
	f := newWideFleet(t, limited, task.ParseQueue("r", nil))
	f.expect(t, "w", 4, "", f.open(t, "q", ""))
	f.open(t, "q", "cpus=4")
	f.open(t, "q", "")
	f.settles(t, "w", 3)
	f.open(t, "r", "cpus=4")
	f.settles(t, "w", 3)
	f.open(t, "r", "")
	f.settles(t, "w", 3)
}

// settles claims for a worker, and waits as its answers say, until nothing wakes it.
func (f *wideFleet) settles(t *testing.T, worker string, free int) {
	t.Helper()
	r := f.claim(t, worker, free)
	for range 10 {
		w := tasks.WaitFor{
			Worker: worker, Node: "n-" + worker, Candidates: f.turns, Full: r.Full, Elsewhere: r.Elsewhere, NodeFull: r.NodeFull,
		}
		if r.Wider {
			w.Slots = free
		}
		got := f.Store.WaitAndClaim(t.Context(), w, time.Millisecond, f.request(worker, free))
		if got.Err != nil || got.Claimed != nil || len(got.Reply.Tasks) > 0 {
			t.Fatalf("%+v", got)
		}
		if got.Woken == "" {
			return
		}
		r, f.gathers[worker] = got.Reply, got.Reply.Gathers
	}
	t.Errorf("worker %s with %d free slots is woken again and again", worker, free)
}

// Work that is claimed ahead has no slot: what is left of it does not count as free.
func TestAheadIsNoFreeSlot(t *testing.T) {
	t.Parallel()
	f := newWideFleet(t, task.ParseQueue("q", nil))
	f.AddQueue(t, task.ParseQueue("plain", nil))
	f.turns = append(f.turns, task.Candidates([]task.Bucket{{Queue: "plain"}}, []task.QueueSpec{task.ParseQueue("plain", nil)}, task.Offer{Slots: 4})...)
	f.open(t, "q", "cpus=4")
	small := f.open(t, "plain", "")
	req := f.request("w", 4)
	req.Ahead, req.First = 3, 1
	if r, err := f.Store.Claim(t.Context(), req); err != nil || !slices.Equal(ids(r.Tasks), []int64{small}) {
		t.Fatalf("%+v, %v", r, err)
	}
	f.expect(t, "v", 1, "q")
}

// A claim that is repeated, since its answer was lost, says what it said, and changes nothing.
func TestRepeatedClaimOfWideTasks(t *testing.T) {
	t.Parallel()
	f := newWideFleet(t, task.ParseQueue("q", nil))
	f.open(t, "q", "cpus=2")
	f.open(t, "q", "cpus=4")
	req := f.request("w", 4)
	first, err := f.Store.Claim(t.Context(), req)
	if err != nil || len(first.Tasks) != 1 || first.Gathers != "q" {
		t.Fatalf("%+v, %v", first, err)
	}
	full := func() map[string]string { return f.Raw.HGetAll(t.Context(), f.Key("full")).Val() }
	before := full()
	again, err := f.Store.Claim(t.Context(), req)
	if err != nil || !slices.Equal(ids(again.Tasks), ids(first.Tasks)) || again.Gathers != first.Gathers || again.Wider != first.Wider || again.More {
		t.Errorf("%+v, %v", again, err)
	}
	if after := full(); !maps.Equal(after, before) {
		t.Errorf("noted %v before, %v after", before, after)
	}
}

// A worker without free slots has none to keep: after a wide task has begun, queues take turns as before, however many more there are.
func TestWideTasksTakeTurns(t *testing.T) {
	t.Parallel()
	f := newWideFleet(t, task.ParseQueue("q", nil), task.ParseQueue("r", nil))
	wide, _, small := f.open(t, "q", "cpus=4"), f.open(t, "q", "cpus=4"), f.open(t, "r", "")
	f.expect(t, "w", 4, "", wide)
	req := f.request("w", 4)
	req.First = 1
	if r, err := f.Store.Claim(t.Context(), req); err != nil || !slices.Equal(ids(r.Tasks), []int64{small}) || r.Gathers != "q" {
		t.Errorf("%+v, %v", r, err)
	}
}
