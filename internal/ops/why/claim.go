package why

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/tasks"
	"github.com/tdf-go/tdf/task"
)

// asked is how many candidates are asked about at a time.
const asked = 32

// ask makes a dry claim for each of the candidates, and finds what is in their way. It leaves out those that no change brings
// together with the task.
func (s *Situation) ask(all []*candidate) error {
	all = slices.DeleteFunc(slices.Clone(all), func(c *candidate) bool {
		return s.Task.ID != 0 && len(task.Unfit(s.Task.Bucket, c.queue.QueueSpec, c.worker.Offer())) > 0
	})
	claims := make([]tasks.DryClaim, len(all))
	for i, c := range all {
		claims[i] = c.claim()
	}
	found, err := s.Claims(claims)
	if err != nil {
		return err
	}
	for i, c := range all {
		c.claims = found[i].Claimed && len(c.reasons) == 0
		c.limits(&found[i])
		c.resources(&found[i])
		c.line(&found[i])
		c.kept(&found[i])
	}
	return nil
}

// claim is what the candidate would claim, once what was found so far is changed. Without a task it is about the queue.
// A worker to be started on no certain node is on one where nothing runs.
func (c *candidate) claim() tasks.DryClaim {
	w, t := &c.worker, &c.s.Task
	d := tasks.DryClaim{
		Claim: tasks.ClaimRequest{
			Worker: w.Name, Node: cmp.Or(w.Node, conn.NewToken()), MaxThreads: nodeCap(w, &c.node), Resources: w.Resources, Max: max(1, free(w)),
			Candidates: []task.Candidate{{Queue: c.queue.QueueSpec}},
		},
		Queue: c.queue.Name, Task: t.ID, Bucket: t.Bucket, At: c.s.at(),
	}
	if t.ID != 0 {
		d.Claim.Candidates = c.candidates()
	}
	return d
}

// candidates are the queues and buckets that the worker takes from.
func (c *candidate) candidates() []task.Candidate {
	queues, buckets := []task.QueueSpec{c.queue.QueueSpec}, []task.Bucket{}
	for i := range c.s.Queues {
		q := &c.s.Queues[i]
		for _, b := range q.Lines {
			buckets = append(buckets, b.Bucket)
		}
		if q.Name != c.queue.Name {
			queues = append(queues, q.QueueSpec)
		}
	}
	if mine := c.s.Task.Bucket; !slices.ContainsFunc(buckets, func(b task.Bucket) bool { return b.Name() == mine.Name() }) {
		buckets = append(buckets, mine)
	}
	return task.Candidates(buckets, queues, c.worker.Offer())
}

// nodeCap is how many rounds the worker lets run on its node.
func nodeCap(w *task.Worker, n *task.Node) task.Limit {
	if n.MaxThreadsSet {
		return n.MaxThreads
	}
	return w.MaxThreads
}

// limits tells which limits are reached, and by whom.
func (c *candidate) limits(h *tasks.Hindrance) {
	q, n := &c.queue, &c.node
	if h.Threads.None() {
		c.full(KindThreads, "queue "+q.Name+" in the fleet", q.Threads, h.Threads, c.onQueue("threads", ""), c.s.holders(q))
	}
	if h.MaxThreads.None() {
		c.full(KindMax, "queue "+q.Name+" on node "+n.Name, q.MaxThreads, h.MaxThreads, c.onQueue("maxthreads", ""), "")
	}
	if h.NodeCap.None() {
		c.full(KindNodeCap, "node "+n.Name, nodeCap(&c.worker, n), h.NodeCap, c.onNode("maxthreads", ""), c.s.queuesOn(n.Name))
	}
	if h.Gated {
		c.add(costDrain, KindGate, Remedy{Object: "server", Attribute: AttrGate, Value: "warn"}, c.s.gateText(n))
	}
}

// full says that a limit is reached, which the change raises by one.
func (c *candidate) full(kind Kind, what string, most task.Limit, left tasks.Places, change Remedy, holders string) {
	running := int64(most.N()) - left.Left
	change.Value = strconv.FormatInt(running+1, 10)
	text := fmt.Sprintf("%s reached its limit: %d running, %s = %s", what, running, change.Attribute, most.Text())
	c.add(costBusy, kind, change, text+holders)
}

// resources tells what others have taken of what the task asks.
func (c *candidate) resources(h *tasks.Hindrance) {
	for _, r := range h.Taken {
		offered := c.worker.Resources[r.Name]
		text := fmt.Sprintf("needs %s=%d, of %d on node %s %d are taken", r.Name, r.Asked, offered, c.node.Name, r.Used)
		missing := task.Resources{r.Name: r.Used + r.Asked - offered}
		c.add(costBusy, KindTaken, c.onNode(AttrFree, missing.Text()), text+takers(&c.node, r.Name))
	}
}

// line tells whether tasks of the queue come before this one, or keep what it asks.
func (c *candidate) line(h *tasks.Hindrance) {
	kind := KindLine
	var text string
	switch n := &h.Next; {
	case n.ID != 0:
		text = fmt.Sprintf("%s before it in queue %s, next task %d (priority %d, effective %d)",
			things(max(n.Before, 1), "task is", "tasks are"), c.queue.Name, n.ID, n.Priority, n.Rank)
		if n.Queues > 1 {
			text += fmt.Sprintf("; %d are due in %d queues, which take turns", n.Due, n.Queues)
		}
	case h.Kept != "":
		kind, text = KindKept, fmt.Sprintf("node %s keeps %s for a task before it in queue %s, which waits for more (the first is task %d)",
			c.node.Name, h.Kept, c.queue.Name, h.Keeper)
	default: // it is the next
		return
	}
	c.add(costBusy, kind, c.s.onTask(AttrBefore, "0"), text)
}

// kept tells whether the worker keeps its free slots for another task.
func (c *candidate) kept(h *tasks.Hindrance) {
	if w := &c.worker; h.Gathers != "" && free(w) > 0 {
		text := fmt.Sprintf("%s keeps its %s for a task of queue %s that takes more", placed(w), freeText(w), h.Gathers)
		c.add(costBusy, KindSlots, Remedy{Object: "queue", Name: h.Gathers, Attribute: "paused", Value: "true"}, text)
	}
}

// holders says where the rounds of a queue are.
func (s *Situation) holders(q *task.Queue) string {
	byWorker := map[string]int{}
	for i := range s.Workers {
		for _, use := range s.Workers[i].Queues {
			if use.Queue == q.Name {
				byWorker[s.Workers[i].Name] += use.Processing
			}
		}
	}
	nodes := counts(q.RunningByNode)
	if nodes == "" {
		return ""
	}
	return " (by node " + nodes + with("; by worker ", counts(byWorker)) + ")"
}

// queuesOn says which queues have rounds on a node.
func (s *Situation) queuesOn(node string) string {
	byQueue := map[string]int64{}
	for i := range s.Queues {
		byQueue[s.Queues[i].Name] = s.Queues[i].RunningByNode[node]
	}
	if text := counts(byQueue); text != "" {
		return " (by queue " + text + ")"
	}
	return ""
}

func (s *Situation) gateText(n *task.Node) string {
	text := fmt.Sprintf("node %s waits for a server's verdict after %d failures in a row", n.Name, n.Run)
	if !n.Quarantined.IsZero() {
		text = "node " + n.Name + " is in quarantine" + since(s.Now, task.Stamp(n.Quarantined))
	}
	text += with(": ", n.Reason)
	if !n.NextTrial.IsZero() {
		text += "; it may try one task at " + moment(task.Stamp(n.NextTrial))
	}
	return text
}

// takers are the tasks that have of a resource.
func takers(n *task.Node, name string) string {
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
