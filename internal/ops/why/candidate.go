package why

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
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
	for _, r := range task.Unfit(b, c.queue.Queue, c.worker.Offer) {
		c.static = c.static || r.Kind != task.KindPaused
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
func (c *candidate) adapt(r task.Reason) (Kind, int, Remedy) {
	queue := Remedy{Object: ObjectQueue, Name: c.queue.Name}
	worker := Remedy{Object: ObjectWorker, Name: c.worker.Worker, Value: r.Wanted}
	switch r.Kind {
	case task.KindPaused:
		if r.Has != "" {
			queue.Attribute, c.queue.Damaged = c.queue.Damaged.Fields()[0], nil
			return KindPaused, 0, queue
		}
		c.queue.Paused = false
		queue.Attribute, queue.Value = "paused", "false"
		return KindPaused, 0, queue
	case task.KindPinned, task.KindIgnored: // never the nearest: one on a better node can be started
		return Kind(r.Kind), costNobody, Remedy{}
	case task.KindClass:
		c.worker.Classes = append(slices.Clone(c.worker.Classes), r.Wanted)
		worker.Attribute = "classes"
		return KindClass, costLacks, worker
	case task.KindEnv:
		c.worker.Env, worker.Attribute = r.Wanted, "env"
		return KindEnv, costLacks, worker
	case task.KindLabel:
		c.worker.Labels = append(slices.Clone(c.worker.Labels), r.Wanted)
		worker.Attribute = "labels"
		return KindLabel, costLacks, worker
	default:
		return c.enlarge(r)
	}
}

// enlarge lets the node have as much of a resource as the task asks.
func (c *candidate) enlarge(r task.Reason) (Kind, int, Remedy) {
	wanted, err := task.ParseResources(r.Wanted)
	if err != nil { // by the hand of another client
		return KindResource, costNobody, Remedy{Object: ObjectTask, Name: c.s.name(), Attribute: "resources"}
	}
	all := task.Resources{}
	maps.Copy(all, c.worker.Resources)
	maps.Copy(all, wanted)
	c.worker.Resources = all
	return KindResource, costLacks, Remedy{Object: ObjectWorker, Name: c.worker.Worker, Attribute: "resources", Value: r.Wanted}
}

// lackText says what is lacking, and whether anybody has it.
func (c *candidate) lackText(r task.Reason) string {
	if r.Kind == task.KindPaused {
		return r.String()
	}
	alive, lacking := 0, 0
	b, q := c.s.Task.Bucket, c.s.queue(c.s.Task.Bucket.QueueName()).Queue
	for _, w := range c.s.alive() {
		alive++
		if slices.ContainsFunc(task.Unfit(b, q, w.Offer), func(o task.Reason) bool { return o.Kind == r.Kind && o.Wanted == r.Wanted }) {
			lacking++
		}
	}
	who := "worker " + c.worker.Worker + " on " + c.worker.Node
	if alive > 1 && lacking == alive {
		who = "no live worker does; " + who + " comes nearest"
	}
	return r.String() + " (" + who + ")"
}

// newcomer is a worker that could be started on a node, or on a new one: it
// offers all that is demanded, and no more.
func (s *Situation) newcomer(node string) *candidate {
	q := s.queue(s.Task.Bucket.QueueName())
	bare := &candidate{s: s, queue: q, worker: Worker{Offer: task.Offer{Node: node, MaxThreads: task.NoLimit}, State: Ready, Slots: 1}}
	for _, r := range task.Unfit(s.Task.Bucket, unpaused(&q), bare.worker.Offer) {
		bare.adapt(r)
	}
	kind, text := s.nobody(node, &q)
	if len(s.alive()) == 0 {
		kind, text = KindNoWorker, "no worker is alive"
	}
	start := Remedy{Object: ObjectWorker, Attribute: AttrStart, Value: offerText(&bare.worker.Offer), Offer: bare.worker.Offer}
	c := s.examine(&bare.worker)
	c.cost += costStart
	c.reasons = append(Explanation{{Kind: kind, Text: text + "; start one with " + start.Value, Blocks: true, Change: start}}, c.reasons...)
	return c
}

// nobody says why only a new worker will do.
func (s *Situation) nobody(node string, q *Queue) (Kind, string) {
	avoids := len(q.Pin) == 0 && len(q.Ignore) > 0
	for _, w := range s.alive() {
		avoids = avoids && slices.Contains(q.Ignore, w.Node)
	}
	switch {
	case avoids:
		return KindIgnored, "queue " + q.Name + " avoids the nodes of all live workers (" + some(q.Ignore) + ")"
	case len(q.Pin) > 0 && !slices.ContainsFunc(s.alive(), func(w Worker) bool { return slices.Contains(q.Pin, w.Node) }):
		return KindPinned, "queue " + q.Name + " is pinned to " + some(q.Pin) + ", where no worker is alive"
	default:
		return KindUnfit, "no worker comes near to what it needs" + on(node)
	}
}

func on(node string) string {
	if node == "" {
		return ""
	}
	return " on node " + node
}

// offerText is an offer as the configuration of a worker has it.
func offerText(o *task.Offer) string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" = "+value)
		}
	}
	add("node", o.Node)
	add("env", o.Env)
	add("labels", strings.Join(o.Labels, ","))
	add("resources", o.Resources.Text())
	add("classes", strings.Join(o.Classes, ","))
	if len(parts) == 0 {
		return "any configuration"
	}
	return strings.Join(parts, "; ")
}

// away says that the worker is not there, and lets it be there.
func (c *candidate) away() {
	w := &c.worker
	text := fmt.Sprintf("worker %s on %s is %s%s", w.Worker, w.Node, w.State, heard(c.s.Now, w.Heartbeat))
	c.add(costAway, KindAway, Remedy{Object: ObjectWorker, Name: w.Worker, Attribute: AttrState, Value: string(Ready)}, text)
	w.State, w.Reason, w.Busy = Ready, "", 0
}

// heard is when a worker was last heard of.
func heard(now, beat statemachine.Time) string {
	if beat == 0 {
		return ""
	}
	return ", last heard of " + span(max(0, now.Sub(beat))) + " ago"
}

// idle finds why the worker asks for nothing.
func (c *candidate) idle() {
	w := &c.worker
	change := Remedy{Object: ObjectWorker, Name: w.Worker}
	where := "worker " + w.Worker + " on " + w.Node
	if w.State != Ready {
		change.Attribute, change.Value = AttrState, string(Ready)
		c.add(costDrain, KindDrain, change, where+" is told to drain, so it takes nothing new")
	}
	if w.Reason != "" {
		change.Attribute, change.Value = AttrReason, ""
		c.add(costDrain, KindClaimsNot, change, where+" claims nothing: "+w.Reason)
	}
	if w.Free() == 0 {
		change.Attribute, change.Value = AttrFreeSlots, "1"
		c.add(costBusy, KindSlots, change, fmt.Sprintf("%s has no free slot (%d of %d busy)", where, w.Busy, w.Slots))
	}
}

// limits finds which limits are reached.
func (c *candidate) limits() {
	q, n := &c.queue, &c.node
	change := Remedy{Object: ObjectQueue, Name: q.Name}
	if left(q.Threads, q.Running) <= 0 {
		change.Attribute, change.Value = "threads", next(q.Running)
		c.add(costBusy, KindThreads, change, reached(q.Running, "queue "+q.Name+" in the fleet", "threads", q.Threads)+c.s.holders(q))
	}
	if here := q.Nodes[n.Name]; left(q.MaxThreads, here) <= 0 {
		change.Attribute, change.Value = "maxthreads", next(here)
		c.add(costBusy, KindMax, change, reached(here, "queue "+q.Name+" on node "+n.Name, "maxthreads", q.MaxThreads))
	}
	if limit := nodeCap(&c.worker, n); left(limit, n.Running) <= 0 {
		change = Remedy{Object: ObjectNode, Name: n.Name, Attribute: "maxthreads", Value: next(n.Running)}
		c.add(costBusy, KindNodeCap, change, reached(n.Running, "node "+n.Name, "maxthreads", limit)+c.s.queuesOn(n.Name))
	}
	if c.s.gated(n) && !c.s.trial(n) {
		change = Remedy{Object: ObjectServer, Attribute: AttrGate, Value: "warn"}
		c.add(costDrain, KindGate, change, c.s.gateText(n))
	}
}

func next(running int64) string { return strconv.FormatInt(running+1, 10) }

func reached(running int64, what, limit string, most task.Limit) string {
	return fmt.Sprintf("%s reached its limit: %d running, %s = %s", what, running, limit, most.Text())
}

// holders says where the rounds of a queue are.
func (s *Situation) holders(q *Queue) string {
	byWorker := map[string]int{}
	for i := range s.Workers {
		byWorker[s.Workers[i].Worker] = s.Workers[i].Serving[q.Name]
	}
	text := ""
	if nodes := counts(q.Nodes); nodes != "" {
		text = " (by node " + nodes
		if workers := counts(byWorker); workers != "" {
			text += "; by worker " + workers
		}
		text += ")"
	}
	return text
}

// queuesOn says which queues have rounds on a node.
func (s *Situation) queuesOn(node string) string {
	byQueue := map[string]int64{}
	for i := range s.Queues {
		byQueue[s.Queues[i].Name] = s.Queues[i].Nodes[node]
	}
	if text := counts(byQueue); text != "" {
		return " (by queue " + text + ")"
	}
	return ""
}

func (s *Situation) gateText(n *Node) string {
	text := fmt.Sprintf("node %s waits for a server's verdict after %d failures in a row", n.Name, n.Run)
	if n.Quarantined != 0 {
		text = "node " + n.Name + " is set aside" + since(s.Now, n.Quarantined)
	}
	text += saying(n.Reason)
	if n.TrialAt != 0 {
		text += "; it may try one task at " + moment(n.TrialAt)
	}
	return text
}

// resources finds what others have taken of what the task asks.
func (c *candidate) resources() {
	demand := demandOf(c.s.Task.Bucket)
	for _, name := range slices.Sorted(maps.Keys(demand)) {
		missing := c.shelf.lacks(name, demand[name])
		if missing <= 0 {
			continue
		}
		text := fmt.Sprintf("needs %s=%d, of %d on node %s %d are taken",
			name, demand[name], c.shelf.offered[name], c.node.Name, c.shelf.used[name])
		change := Remedy{Object: ObjectNode, Name: c.node.Name, Attribute: AttrFree, Value: task.Resources{name: missing}.Text()}
		c.add(costBusy, KindTaken, change, text+c.node.takers(name))
		c.shelf.used[name] -= missing
	}
}

// takers are the tasks that have of a resource.
func (n *Node) takers(name string) string {
	var tasks []string
	for _, id := range slices.Sorted(maps.Keys(n.Held)) {
		if amount := n.Held[id][name]; amount > 0 {
			tasks = append(tasks, fmt.Sprintf("task %d has %d", id, amount))
		}
	}
	if len(tasks) == 0 {
		return ""
	}
	return " (" + some(tasks) + ")"
}
