package why

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/statemachine"
)

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

func reached(running int64, what, limit string, most route.Limit) string {
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
		change := Remedy{Object: ObjectNode, Name: c.node.Name, Attribute: AttrFree, Value: route.Resources{name: missing}.Text()}
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
