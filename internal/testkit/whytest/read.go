package whytest

import (
	"cmp"
	"slices"

	"github.com/tdf-go/tdf/internal/ops/why"
	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/statemachine"
)

// Situation is what is to be read of the world to explain a task.
func (p *Plan) Situation(id int64) why.Situation {
	t := p.Task(id)
	s := why.Situation{Now: p.Now, Workers: p.Workers, Gate: p.Gate, GateRun: GateRun}
	s.Task = why.Task{Task: statemachine.Task{
		ID: id, State: t.State, StartAfter: t.StartAfter, NotBefore: t.NotBefore, EndBefore: statemachine.Never,
	}, Bucket: t.Bucket, Since: t.Since}
	if t.State == statemachine.Open {
		s.Task.Since = t.Start()
	}
	if t.Plan != "" {
		s.Task.Plan = why.Plan{ID: planID(id), State: t.Plan, FailedTask: t.FailedTask, HeldBy: "ann"}
		s.Task.HandHeld, s.Task.Needs = t.HandHeld, t.Needs
	}
	for _, q := range p.Queues {
		s.Queues = append(s.Queues, p.lookQueue(q))
	}
	for _, n := range p.Nodes {
		s.Nodes = append(s.Nodes, p.lookNode(n))
	}
	s.Lines = p.lines(s.At())
	return s
}

func (p *Plan) lookQueue(q route.Queue) why.Queue {
	look := why.Queue{Queue: q, Running: int64(p.running(q.Name, "")), Nodes: map[string]int64{}}
	for _, t := range p.Tasks {
		switch {
		case t.Bucket.QueueName() != q.Name:
		case t.State == statemachine.Running:
			look.Nodes[t.Node]++
		case t.State == statemachine.Open:
			look.Waiting++
			if start := t.Start(); start <= p.Now {
				look.Due++
				if look.Oldest == 0 || start < look.Oldest {
					look.Oldest = start
				}
			}
		}
	}
	return look
}

func (p *Plan) lookNode(n route.Node) why.Node {
	look := why.Node{Node: n, Running: int64(p.running("", n.Name)), Used: route.Resources{}, Held: map[int64]route.Resources{}}
	for _, t := range p.Tasks {
		if t.State == statemachine.Running && t.Node == n.Name {
			look.Held[t.ID] = t.Got
			for name, amount := range t.Got {
				look.Used[name] += amount
			}
		}
	}
	return look
}

// lines are the buckets as the store reads them.
func (p *Plan) lines(at statemachine.Time) []why.Line {
	byName := map[string]*why.Line{}
	var names []string
	for _, t := range p.Tasks {
		if t.State != statemachine.Open || t.Start() > at {
			continue
		}
		name := t.Bucket.Name()
		if byName[name] == nil {
			byName[name] = &why.Line{Bucket: t.Bucket}
			names = append(names, name)
		}
		l := byName[name]
		l.First, l.Due = append(l.First, why.Waiting{ID: t.ID, Due: t.Start()}), l.Due+1
	}
	lines := make([]why.Line, 0, len(names))
	for _, name := range names {
		l := byName[name]
		sortLane(l.First, p.order(l.Bucket.QueueName()))
		l.First = l.First[:min(len(l.First), p.mostFree())]
		lines = append(lines, *l)
	}
	return lines
}

func sortLane(lane []why.Waiting, order route.Order) {
	slices.SortFunc(lane, func(x, y why.Waiting) int {
		return cmp.Or(cmp.Compare(x.Due, y.Due), cmp.Compare(x.ID, y.ID))
	})
	if order == route.Lifo {
		slices.Reverse(lane)
	}
}

// order is that of a queue, also of one without a record.
func (p *Plan) order(queue string) route.Order { return p.attributes(queue).Order }

func (p *Plan) attributes(queue string) route.Queue {
	for _, q := range p.Queues {
		if q.Name == queue {
			return q
		}
	}
	return route.NewQueue(queue)
}

// mostFree is the most free slots of a worker, and one at least.
func (p *Plan) mostFree() int {
	most := 1
	for i := range p.Workers {
		most = max(most, p.Workers[i].Free())
	}
	return most
}
