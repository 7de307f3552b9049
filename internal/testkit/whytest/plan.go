package whytest

import (
	"maps"
	"slices"

	"github.com/tdf-go/tdf/internal/ops/why"
	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/statemachine"
)

// GateRun is the number of failures in a row that close the gate of a node.
const GateRun = 5

// Plan is a whole world at one moment, as plain lists.
type Plan struct {
	Now statemachine.Time
	// Gate is quarantine = on.
	Gate    bool
	Queues  []route.Queue
	Nodes   []route.Node
	Workers []why.Worker
	Tasks   []Task
}

// Task waits, or runs on a node, perhaps without a worker that is known.
type Task struct {
	ID     int64
	State  statemachine.State // open, blocked or running
	Bucket route.Bucket
	// Since is when the task came to be open.
	Since, StartAfter, NotBefore statemachine.Time
	// Plan is the state of the plan of a blocked task, empty for none: then it is
	// held. FailedTask is because of which that plan holds; HandHeld says that the task is held as well, Needs
	// are those that it waits for.
	Plan       why.PlanState
	FailedTask int64
	HandHeld   bool
	Needs      []why.Need
	// Node and Got are those of a running task.
	Node string
	Got  route.Resources
}

// Start is from when on the task may be claimed, and counts as waiting: from the
// start it was given, also a past one, unless it was opened again with a rest.
func (t *Task) Start() statemachine.Time {
	if t.StartAfter > 0 && t.NotBefore == 0 {
		return t.StartAfter
	}
	return max(t.Since, t.StartAfter, t.NotBefore)
}

// Clone is a plan that shares nothing that is changed.
func (p *Plan) Clone() *Plan {
	c := *p
	c.Queues, c.Nodes = slices.Clone(p.Queues), slices.Clone(p.Nodes)
	c.Workers, c.Tasks = slices.Clone(p.Workers), slices.Clone(p.Tasks)
	for i := range c.Workers {
		w := &c.Workers[i]
		w.Labels, w.Classes, w.Resources = slices.Clone(w.Labels), slices.Clone(w.Classes), maps.Clone(w.Resources)
	}
	for i := range c.Tasks {
		c.Tasks[i].Got = maps.Clone(c.Tasks[i].Got)
	}
	return &c
}

// Task is the task of that id.
func (p *Plan) Task(id int64) *Task {
	return &p.Tasks[slices.IndexFunc(p.Tasks, func(t Task) bool { return t.ID == id })]
}

// Queue is the queue of that name, which is made if there is none.
func (p *Plan) Queue(name string) *route.Queue {
	i := slices.IndexFunc(p.Queues, func(q route.Queue) bool { return q.Name == name })
	if i < 0 {
		i, p.Queues = len(p.Queues), append(p.Queues, route.NewQueue(name))
	}
	return &p.Queues[i]
}

// Node is the node of that name, which is made if there is none.
func (p *Plan) Node(name string) *route.Node {
	i := slices.IndexFunc(p.Nodes, func(n route.Node) bool { return n.Name == name })
	if i < 0 {
		i, p.Nodes = len(p.Nodes), append(p.Nodes, route.NewNode(name))
	}
	return &p.Nodes[i]
}

// running counts the running tasks of a queue on a node; "" is any.
func (p *Plan) running(queue, node string) (n int) {
	for _, t := range p.Tasks {
		if t.State == statemachine.Running && (queue == "" || t.Bucket.QueueName() == queue) && (node == "" || t.Node == node) {
			n++
		}
	}
	return n
}

// used is how much of a resource the running tasks of a node have.
func (p *Plan) used(node, name string) (n int) {
	for _, t := range p.Tasks {
		if t.State == statemachine.Running && t.Node == node {
			n += t.Got[name]
		}
	}
	return n
}

// demand is what the tasks of a bucket ask.
func demand(b route.Bucket) route.Resources {
	var asked route.Resources
	fields := b.Fields()
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == "resources" {
			asked, _ = route.ParseResources(fields[i+1]) // made up here, so it is one
		}
	}
	return asked
}
