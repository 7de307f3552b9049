package store_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// running are the rounds of a queue on a node; empty for any.
func (w *twins) running(queue, node string) []*twin {
	var found []*twin
	for _, id := range w.ids() {
		t := w.tasks[id]
		if t.State == statemachine.Running && (queue == "" || t.bucket.QueueName() == queue) && (node == "" || t.node == node) {
			found = append(found, t)
		}
	}
	return found
}

// room reports whether the limits leave a place for one more round of a queue.
func (w *twins) room(req *tasks.ClaimRequest, q *task.QueueSpec) bool {
	below := func(limit task.Limit, n int) bool { return limit == "" || n < limit.N() }
	if !below(q.Threads, len(w.running(q.Name, ""))) {
		return false
	}
	return req.Node == "" ||
		below(q.MaxThreads, len(w.running(q.Name, req.Node))) && below(req.MaxThreads, len(w.running("", req.Node)))
}

// due are the tasks of a queue that may be claimed, in the order they are.
func (w *twins) due(turn *task.Candidate) []*twin {
	q := &turn.Queue
	var fit []*twin
	for _, id := range w.ids() {
		if t := w.tasks[id]; t.listed && slices.Contains(turn.Buckets, t.bucket) && t.score <= w.now {
			fit = append(fit, t)
		}
	}
	rank := func(t *twin) int64 {
		if aging := q.EffectiveAging(); aging > 0 {
			return int64(t.bucket.Priority) + int64(w.now.Sub(t.score)/aging)
		}
		return int64(t.bucket.Priority)
	}
	slices.SortFunc(fit, func(a, b *twin) int {
		order := cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.ID, b.ID))
		if q.Order == task.Lifo {
			order = -order
		}
		return cmp.Or(cmp.Compare(rank(b), rank(a)), order)
	})
	return fit
}

// pick is the task a queue offers next: the first that finds what it asks, after
// those before it, which find too little, have kept it. Nil for none.
func (w *twins) pick(req *tasks.ClaimRequest, turn *task.Candidate) *twin {
	kept := 0
	for _, t := range w.due(turn) {
		asks := gpusOf(t.bucket)
		if asks == 0 || kept == 0 && asks <= len(w.freeGPUs(req.Node)) {
			return t
		}
		kept += asks
	}
	return nil
}

func gpusOf(b task.Bucket) int {
	n := 0
	_, _ = fmt.Sscanf(b.Resources, "gpu=%d", &n) // none is none
	return n
}

// freeGPUs are the pieces that no round of the node has; without a node there are none.
func (w *twins) freeGPUs(node string) []int {
	if node == "" {
		return nil
	}
	var free []int
	for id := range someOffer["gpu"] {
		taken := func(t *twin) bool { return slices.Contains(t.allotted, id) }
		if !slices.ContainsFunc(w.running("", node), taken) {
			free = append(free, id)
		}
	}
	return free
}

// claimModel claims on the model and returns the ids. What is overdue leaves
// its bucket and is not claimed. The last are claimed ahead, where nothing limits.
func (w *twins) claimModel(req *tasks.ClaimRequest) []int64 {
	ids := w.turns(req, req.Candidates, req.Max-req.Ahead, nil)
	if len(ids) < req.Max-req.Ahead || req.Node != "" && limits(req.MaxThreads) {
		return ids
	}
	free := slices.DeleteFunc(slices.Clone(req.Candidates), func(c task.Candidate) bool {
		return limits(c.Queue.Threads) || limits(c.Queue.MaxThreads) ||
			slices.ContainsFunc(c.Buckets, func(b task.Bucket) bool { return b.Resources != "" })
	})
	return w.turns(req, free, req.Max, ids)
}

func limits(l task.Limit) bool { return l != "" && l != task.Unlimited }

// turns gives queues turns until there are that many ids.
func (w *twins) turns(req *tasks.ClaimRequest, candidates []task.Candidate, most int, ids []int64) []int64 {
	for took := true; took; {
		took = false
		for i := range candidates {
			if len(ids) < most && w.turn(req, &candidates[(req.First+i)%len(candidates)], &ids) {
				took = true
			}
		}
	}
	return ids
}

// turn gives a queue one turn.
func (w *twins) turn(req *tasks.ClaimRequest, turn *task.Candidate, ids *[]int64) bool {
	for w.room(req, &turn.Queue) {
		t := w.pick(req, turn)
		if t == nil {
			return false
		}
		t.listed = false
		o := statemachine.Occurrence{
			Event: statemachine.Claim, Actor: statemachine.Worker, Claim: fmt.Sprintf("e%d-%s.%d", epochOf(w.sp), req.Request, len(*ids)+1),
		}
		m, err := statemachine.Decide(&t.Task, o, w.now)
		if err != nil {
			continue
		}
		free := w.freeGPUs(req.Node)
		if result, _ := w.model(m); result == statemachine.Moved {
			*ids = append(*ids, t.ID)
			t.worker, t.incarnation, t.node, t.allotted = req.Worker, req.Incarnation, req.Node, nil
			if req.Node != "" {
				t.allotted = free[:gpusOf(t.bucket)]
			}
			return true
		}
	}
	return false
}

func sameAllotted(got map[string]task.Allotted, want []int) bool {
	return len(want) == 0 && len(got) == 0 || len(got) == 1 && got["gpu"].Count == len(want) && slices.Equal(got["gpu"].IDs, want)
}

// checkCounts: each running round is counted for its queue and node, with what it
// has got, and nothing else is.
func (w *twins) checkCounts(rt *rapid.T) {
	want := map[string][]string{}
	add := func(key string, t *twin) { want[key] = append(want[key], fmt.Sprint(t.ID)) }
	for _, t := range w.running("", "") {
		queue := t.bucket.QueueName()
		add("busy:queue:"+queue, t)
		if t.node != "" {
			add("busy:node:"+t.node, t)
			add(fmt.Sprintf("busy:both:%d:%s:%s", len(t.node), t.node, queue), t)
		}
	}
	for _, queue := range []string{"q", task.DefaultQueue} {
		keys := []string{"busy:queue:" + queue}
		for _, worker := range someWorkers {
			node := "n" + worker
			keys = append(keys, "busy:node:"+node, fmt.Sprintf("busy:both:%d:%s:%s", len(node), node, queue))
		}
		for _, key := range keys {
			got := w.sp.Raw.SMembers(w.t.Context(), w.sp.Key(key)).Val()
			slices.Sort(got)
			slices.Sort(want[key])
			if !slices.Equal(got, want[key]) {
				rt.Fatalf("%s has %v, the model %v", key, got, want[key])
			}
		}
	}
	for _, worker := range someWorkers {
		w.checkUsed(rt, "n"+worker)
	}
}

func (w *twins) checkUsed(rt *rapid.T, node string) {
	want := map[string]string{}
	for _, t := range w.running("", node) {
		if len(t.allotted) > 0 {
			want[fmt.Sprint(t.ID)] = fmt.Sprintf("gpu:%d[%s]", len(t.allotted), strings.Trim(fmt.Sprint(t.allotted), "[]"))
		}
	}
	if got := w.sp.Raw.HGetAll(w.t.Context(), w.sp.Key("used:"+node)).Val(); !maps.Equal(got, want) {
		rt.Fatalf("used on %s: %v, the model %v", node, got, want)
	}
}
