package whytest

import (
	"cmp"
	"slices"

	"github.com/tdf-go/tdf/internal/ops/why"
	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// Twin is what the claim script does, told again over plain lists, without
// regard to speed.
type Twin struct{}

// Claimed implements [Claimer].
func (Twin) Claimed(p *Plan, worker int, id int64) bool {
	w := &p.Workers[worker]
	if w.State != why.Ready || w.Reason != "" {
		return false
	}
	world := p.Clone()
	queues := world.turns(w, world.Task(id).Bucket.QueueName())
	for free := w.Slots - w.Busy; free > 0; {
		took := false
		for _, q := range queues {
			t := world.next(w, q)
			if free == 0 || t == nil || world.nodeFull(p, w) {
				continue
			}
			if t.ID == id {
				return true
			}
			t.State, t.Node = statemachine.Running, w.Node
			t.Got = demand(t.Bucket)
			free, took = free-1, true
		}
		if !took {
			break
		}
	}
	return false
}

// turns are the queues with something for the worker, in the order of their
// turns.
func (p *Plan) turns(w *why.Worker, first string) []string {
	var names []string
	for _, t := range p.Tasks {
		if name := t.Bucket.QueueName(); t.State == statemachine.Open && !slices.Contains(names, name) && p.fits(w, &t) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if i := slices.Index(names, first); i > 0 {
		names = append(names[i:], names[:i]...)
	}
	return names
}

func (p *Plan) fits(w *why.Worker, t *Task) bool {
	return len(task.Unfit(t.Bucket, p.attributes(t.Bucket.QueueName()), w.Offer)) == 0
}

// nodeFull says that the cap or the gate of the worker's node lets nothing in;
// before is the world before the claim.
func (p *Plan) nodeFull(before *Plan, w *why.Worker) bool {
	running := p.running("", w.Node)
	limit := w.MaxThreads
	for _, n := range p.Nodes {
		if n.Name != w.Node {
			continue
		}
		if n.MaxThreadsSet {
			limit = n.MaxThreads
		}
		if p.Gate && (n.Run >= GateRun || n.Quarantined != 0) {
			trial := n.TrialAt != 0 && n.TrialAt <= p.Now
			if !trial || running > before.running("", w.Node) {
				return true
			}
		}
	}
	return limit != task.NoLimit && running >= int(limit)
}

// next is the task that a queue offers the worker, if there is one.
func (p *Plan) next(w *why.Worker, queue string) *Task {
	q := p.attributes(queue)
	if q.Threads != task.NoLimit && p.running(queue, "") >= int(q.Threads) ||
		q.MaxThreads != task.NoLimit && p.running(queue, w.Node) >= int(q.MaxThreads) {
		return nil
	}
	kept := map[string]bool{}
	for _, t := range p.fronts(q, w) {
		demanded := demand(t.Bucket)
		short := false
		for name, n := range demanded {
			short = short || kept[name] || w.Resources[name]-p.used(w.Node, name) < n
		}
		if !short {
			return t
		}
		for name := range demanded {
			kept[name] = true
		}
	}
	return nil
}

// fronts are the first due tasks of each bucket that fits the worker, or any
// worker if w is nil, in the order in which the queue offers them.
func (p *Plan) fronts(q task.Queue, w *why.Worker) []*Task {
	first := map[task.Bucket]*Task{}
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if t.State != statemachine.Open || t.Bucket.QueueName() != q.Name || t.Start() > p.Now || w != nil && !p.fits(w, t) {
			continue
		}
		b := t.Bucket
		b.Queue = q.Name
		if f := first[b]; f == nil || earlier(q, t, f) < 0 {
			first[b] = t
		}
	}
	fronts := make([]*Task, 0, len(first))
	for _, t := range first {
		fronts = append(fronts, t)
	}
	slices.SortFunc(fronts, func(x, y *Task) int {
		return cmp.Or(cmp.Compare(p.effective(q, y), p.effective(q, x)), earlier(q, x, y))
	})
	return fronts
}

// effective is the priority of a task and a point for each time of aging.
func (p *Plan) effective(q task.Queue, t *Task) int {
	if q.Aging == 0 || q.Order == task.Lifo {
		return t.Bucket.Priority
	}
	return t.Bucket.Priority + int((p.Now-t.Start())/statemachine.Time(q.Aging))
}

func earlier(q task.Queue, x, y *Task) int {
	c := cmp.Or(cmp.Compare(x.Start(), y.Start()), cmp.Compare(x.ID, y.ID))
	if q.Order == task.Lifo {
		return -c
	}
	return c
}
