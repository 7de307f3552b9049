package store_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// someOffer is what the nodes of the model offer, one worker each.
var someOffer = task.Resources{"gpu": 3}

// request is one of a worker for some of the buckets, under the rules of the model or older ones.
var someCaps = []task.Limit{task.Unlimited, task.AtMost(0), task.AtMost(1), task.AtMost(2), task.AtMost(3), task.AtMost(4)}

func (w *twins) request(rt *rapid.T, worker string) tasks.ClaimRequest {
	buckets := rapid.Permutation(someBuckets).Draw(rt, "buckets")[:rapid.IntRange(1, len(someBuckets)).Draw(rt, "n")]
	offer := task.Offer{Worker: worker, Node: "n" + worker, Env: "java", Labels: []string{"gpu=1"}, Resources: someOffer}
	req := tasks.ClaimRequest{
		Worker: worker, Request: w.token("c"), Max: rapid.IntRange(1, 4).Draw(rt, "most"),
		Candidates: task.Candidates(buckets, slices.Collect(maps.Values(w.queues)), offer), First: rapid.IntRange(0, 3).Draw(rt, "first"),
		Node: offer.Node, MaxThreads: someCaps[rapid.IntRange(0, 5).Draw(rt, "cap")], Resources: someOffer,
		Rules: w.version - int64(max(0, rapid.IntRange(-5, 1).Draw(rt, "behind"))),
	}
	req.Ahead = rapid.IntRange(0, req.Max).Draw(rt, "ahead")
	if rapid.IntRange(0, 4).Draw(rt, "no node") == 0 {
		req.Node, req.Resources = "", nil
	}
	return req
}

// setQueue changes a limit or the order of a queue of the model.
func (w *twins) setQueue(rt *rapid.T) {
	name := rapid.SampledFrom([]string{"q", task.DefaultQueue}).Draw(rt, "queue")
	change := rapid.SampledFrom([][2]string{
		{"threads", "none"}, {"threads", "0"}, {"threads", "2"}, {"threads", "4"}, {"maxthreads", "none"}, {"maxthreads", "1"},
		{"maxthreads", "3"}, {"order", "lifo"}, {"order", "fifo"}, {"aging", "0"}, {"aging", "1"}, {"aging", "2.5"}, {"aging", "3600"},
	}).Draw(rt, "change")
	q, err := w.sp.Store.SetQueue(w.t.Context(), name, func(q *task.QueueSpec) error { return q.Set(change[0], change[1]) })
	if err != nil {
		rt.Fatal(err)
	}
	model := w.queues[name]
	if err := model.Set(change[0], change[1]); err != nil {
		rt.Fatal(err)
	}
	w.queues[name], w.version = model, w.version+1
	q.Created = model.Created
	if diff := diffAny(model, q); diff != "" {
		rt.Fatalf("queue %s (- model, + redis):\n%s", name, diff)
	}
}

// beaten makes a claim count as a heartbeat. It reports whether the claim is
// without a session or under one that holds, and compares the error.
func (w *twins) beaten(rt *rapid.T, req tasks.ClaimRequest, err error) bool {
	s := w.sessions[req.Worker]
	holds := req.Incarnation == 0 || s.holds(req.Incarnation)
	agree(rt, "claim", err, holds)
	if holds && req.Incarnation > 0 && s.listed {
		s.beat = w.now
	}
	return holds
}

func (w *twins) claimAs(rt *rapid.T, worker string, req tasks.ClaimRequest) {
	reply, err := w.sp.Store.Claim(w.t.Context(), req)
	s := w.sessions[req.Worker]
	if holds := req.Incarnation == 0 || s.holds(req.Incarnation); holds && req.Rules != w.version {
		if err != nil || !reply.Stale || len(reply.Tasks) > 0 {
			rt.Fatalf("claimed %+v, error %v, under rules of version %d, those in force are of %d", reply, err, req.Rules, w.version)
		}
		return
	}
	if !w.beaten(rt, req, err) {
		return
	}
	want := w.claimModel(&req)
	if got := claimedIDs(reply.Tasks); !slices.Equal(got, want) || len(reply.Damaged) > 0 {
		rt.Fatalf("claimed %v, the model %v; damaged %v", got, want, reply.Damaged)
	}
	for i := range reply.Tasks {
		w.compareClaimed(rt, &reply.Tasks[i])
	}
	w.held = append(w.held, reply.Tasks...)
	if len(want) > 0 { // a claim that got nothing leaves nothing to repeat
		w.last[worker] = req
	}
}

// claimAgain sends a worker's last claim again: what it still holds, and
// nothing changes.
func (w *twins) claimAgain(rt *rapid.T) {
	worker := rapid.SampledFrom([]string{"w1", "w2"}).Draw(rt, "worker")
	req, ok := w.last[worker]
	if !ok {
		rt.Skip("no claim yet")
	}
	reply, err := w.sp.Store.Claim(w.t.Context(), req)
	if !w.beaten(rt, req, err) {
		return
	}
	got := claimedIDs(reply.Tasks)
	for i := range reply.Tasks {
		w.compareClaimed(rt, &reply.Tasks[i])
	}
	for id, t := range w.tasks {
		holds := t.State == statemachine.Running &&
			strings.HasPrefix(t.Current.Claim, fmt.Sprintf("e%d-%s.", epochOf(w.sp), req.Request))
		if holds != slices.Contains(got, id) {
			rt.Fatalf("claim %s sent again answers %v; task %d is held: %v", req.Request, got, id, holds)
		}
	}
}
