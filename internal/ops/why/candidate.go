package why

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tdf-go/tdf/internal/route"
)

// candidate is a worker that might take the task, and what keeps it from that.
// While the reasons are found, queue, worker and shelf become what they will be
// once the changes are made, so that what is found later holds then.
type candidate struct {
	s       *Situation
	queue   Queue
	worker  Worker
	node    Node
	shelf   shelf
	reasons []Reason
	// static says that the two do not go together, whatever runs just now.
	static bool
	cost   int
}

// What makes a candidate less near: any other worker is nearer than one on a
// node that its queue is not for, or than a task that fits nowhere.
const (
	costBusy   = 1
	costDrain  = 3
	costLacks  = 100
	costAway   = 150
	costStart  = 400
	costNobody = 1 << 20
)

// examine finds what keeps a worker from the task.
func (s *Situation) examine(w *Worker) *candidate {
	c := &candidate{s: s, queue: s.queue(s.Task.Bucket.QueueName()), worker: *w}
	c.node = s.node(w.Node)
	if !w.Alive() {
		c.away()
	}
	c.fit()
	c.handler()
	c.shelf = newShelf(&c.worker, &c.node)
	c.idle()
	c.limits()
	c.resources()
	c.line()
	return c
}

func (c *candidate) add(cost int, kind Kind, change Remedy, text string) {
	c.reasons = append(c.reasons, Reason{Kind: kind, Text: text, Blocks: true, Change: change})
	c.cost += cost
}

// fit finds in what respect task and worker do not go together.
func (c *candidate) fit() {
	b := c.s.Task.Bucket
	for _, r := range route.Unfit(b, c.queue.Queue, c.worker.Offer) {
		c.static = c.static || r.Kind != route.KindPaused
		kind, cost, change := c.adapt(r)
		c.add(cost, kind, change, c.lackText(r))
	}
}

// handler finds that the worker would only hand the task back again.
func (c *candidate) handler() {
	if !c.s.declined(&c.worker) {
		return
	}
	c.static = true
	var by []string
	alive := c.s.alive()
	for i := range alive {
		if c.s.declined(&alive[i]) {
			by = append(by, alive[i].Worker)
		}
	}
	program := c.s.Task.Program
	text := fmt.Sprintf("worker %s on %s has no handler for program %s and runs no programs", c.worker.Worker, c.worker.Node, program)
	if len(by) == len(alive) {
		text = fmt.Sprintf("no live worker has a handler for program %s or runs programs", program)
	}
	text += fmt.Sprintf(": handed back by %s", some(by))
	change := Remedy{Object: ObjectWorker, Name: c.worker.Worker, Attribute: AttrHandlers, Value: program}
	c.add(costLacks, KindHandler, change, text)
}

// adapt changes queue or worker so that the reason is gone.
func (c *candidate) adapt(r route.Reason) (Kind, int, Remedy) {
	queue := Remedy{Object: ObjectQueue, Name: c.queue.Name}
	worker := Remedy{Object: ObjectWorker, Name: c.worker.Worker, Value: r.Wanted}
	switch r.Kind {
	case route.KindPaused:
		if r.Has != "" {
			queue.Attribute, c.queue.Damaged = c.queue.Damaged.Fields()[0], nil
			return KindPaused, 0, queue
		}
		c.queue.Paused = false
		queue.Attribute, queue.Value = "paused", "false"
		return KindPaused, 0, queue
	case route.KindPinned, route.KindIgnored: // never the nearest: one on a better node can be started
		return Kind(r.Kind), costNobody, Remedy{}
	case route.KindClass:
		c.worker.Classes = append(slices.Clone(c.worker.Classes), r.Wanted)
		worker.Attribute = "classes"
		return KindClass, costLacks, worker
	case route.KindEnv:
		c.worker.Env, worker.Attribute = r.Wanted, "env"
		return KindEnv, costLacks, worker
	case route.KindLabel:
		c.worker.Labels = append(slices.Clone(c.worker.Labels), r.Wanted)
		worker.Attribute = "labels"
		return KindLabel, costLacks, worker
	default:
		return c.enlarge(r)
	}
}

// enlarge lets the node have as much of a resource as the task asks.
func (c *candidate) enlarge(r route.Reason) (Kind, int, Remedy) {
	wanted, err := route.ParseResources(r.Wanted)
	if err != nil { // by the hand of another client
		return KindResource, costNobody, Remedy{Object: ObjectTask, Name: c.s.name(), Attribute: "resources"}
	}
	all := route.Resources{}
	maps.Copy(all, c.worker.Resources)
	maps.Copy(all, wanted)
	c.worker.Resources = all
	return KindResource, costLacks, Remedy{Object: ObjectWorker, Name: c.worker.Worker, Attribute: "resources", Value: r.Wanted}
}

// lackText says what is lacking, and whether anybody has it.
func (c *candidate) lackText(r route.Reason) string {
	if r.Kind == route.KindPaused {
		return r.String()
	}
	alive, lacking := 0, 0
	b, q := c.s.Task.Bucket, c.s.queue(c.s.Task.Bucket.QueueName()).Queue
	for _, w := range c.s.alive() {
		alive++
		if slices.ContainsFunc(route.Unfit(b, q, w.Offer), func(o route.Reason) bool { return o.Kind == r.Kind && o.Wanted == r.Wanted }) {
			lacking++
		}
	}
	who := "worker " + c.worker.Worker + " on " + c.worker.Node
	if alive > 1 && lacking == alive {
		who = "no live worker does; " + who + " comes nearest"
	}
	return r.String() + " (" + who + ")"
}
