package why

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// claim is one call of the claim script by a worker, played through: for all
// its free slots, with the first turn at the task's queue.
type claim struct {
	s       *Situation
	shelf   shelf
	places  map[string]int64
	queues  map[string]*Queue
	lanes   map[string][]*lane
	room    int64
	claimed bool
}

// claimedBy reports whether a claim of the worker would get the task now.
func (s *Situation) claimedBy(w *Worker) bool {
	if !w.claims() || s.declined(w) || len(task.Unfit(s.Task.Bucket, s.queue(s.Task.Bucket.QueueName()).Queue, w.Offer)) > 0 {
		return false
	}
	n := s.node(w.Node)
	c := &claim{
		s: s, shelf: newShelf(w, &n), room: min(int64(w.Free()), s.room(w, &n)),
		places: map[string]int64{}, queues: map[string]*Queue{}, lanes: map[string][]*lane{},
	}
	c.line(w)
	return c.play()
}

// line puts up the lines that the worker may take from.
func (c *claim) line(w *Worker) {
	for _, l := range c.s.Lines {
		name := l.Bucket.QueueName()
		if c.queues[name] == nil {
			q := c.s.queue(name)
			c.queues[name], c.places[name] = &q, places(&q, w.Node)
		}
		if len(task.Unfit(l.Bucket, c.queues[name].Queue, w.Offer)) == 0 {
			c.lanes[name] = append(c.lanes[name], &lane{Line: l, demand: demandOf(l.Bucket)})
		}
	}
}

// play gives the queues their turns until the task is claimed, or nothing more.
func (c *claim) play() bool {
	turns := slices.Sorted(maps.Keys(c.lanes))
	first := max(0, slices.Index(turns, c.s.Task.Bucket.QueueName()))
	for took := true; took && !c.claimed; {
		took = false
		for i := range turns {
			if c.room > 0 && c.turn(turns[(first+i)%len(turns)]) {
				took = true
			}
		}
	}
	return c.claimed
}

// turn claims one task of a queue, if there is one.
func (c *claim) turn(name string) bool {
	if c.places[name] <= 0 {
		return false
	}
	l := best(&c.queues[name].Queue, c.lanes[name], c.s.Now, c.shelf)
	if l == nil {
		return false
	}
	c.claimed = c.claimed || l.First[l.next].ID == c.s.Task.ID
	c.shelf.take(l.demand)
	l.next++
	c.places[name]--
	c.room--
	return true
}

// places is how many more rounds a queue may have on a node.
func places(q *Queue, node string) int64 {
	return min(left(q.Threads, q.Running), left(q.MaxThreads, q.Nodes[node]))
}

// left is what a limit leaves.
func left(l task.Limit, running int64) int64 {
	if l < 0 {
		return math.MaxInt64
	}
	return int64(l) - running
}

// nodeCap is how many rounds the worker lets run on its node.
func nodeCap(w *Worker, n *Node) task.Limit {
	if n.MaxThreadsSet {
		return n.MaxThreads
	}
	return w.MaxThreads
}

// room is how many more rounds the node takes by its cap and its gate.
func (s *Situation) room(w *Worker, n *Node) int64 {
	room := left(nodeCap(w, n), n.Running)
	switch {
	case !s.gated(n):
		return room
	case s.trial(n):
		return min(room, 1)
	default:
		return 0
	}
}

// gated says that the node may claim nothing but trials.
func (s *Situation) gated(n *Node) bool {
	return s.Gate && n.Name != "" && (n.Run >= s.GateRun || n.Quarantined != 0)
}

// trial says that the node may try a task, whatever else still runs there.
func (s *Situation) trial(n *Node) bool { return n.TrialAt != 0 && s.At() >= n.TrialAt }

// line finds whether tasks of the queue come before this one, or keep what it
// asks.
func (c *candidate) line() {
	ahead := c.ahead()
	kept := map[string]bool{}
	for _, h := range ahead {
		if !c.shelf.short(h.line.demand, kept) {
			c.add(costBusy, KindLine, c.first(), c.lineText(ahead, h))
			return
		}
		keep(kept, h.line.demand)
	}
	for name := range demandOf(c.s.Task.Bucket) {
		if kept[name] {
			text := fmt.Sprintf("node %s keeps %s for a task before it in queue %s, which waits for more (the first is task %d)",
				c.node.Name, name, c.queue.Name, ahead[0].ID)
			c.add(costBusy, KindKept, c.first(), text)
			return
		}
	}
}

// first is the change that puts the task in front.
func (c *candidate) first() Remedy {
	return Remedy{Object: ObjectTask, Name: c.s.name(), Attribute: AttrBefore, Value: "0"}
}

// ahead are the heads that the worker could take and that come before the task,
// in their order.
func (c *candidate) ahead() []head {
	at, me := c.s.At(), c.s.standing()
	q, b := &c.queue.Queue, c.s.Task.Bucket
	var lanes []*lane
	for _, l := range c.s.Lines {
		if l.Bucket.QueueName() == c.queue.Name && len(task.Unfit(l.Bucket, *q, c.worker.Offer)) == 0 {
			lanes = append(lanes, &lane{Line: l, demand: demandOf(l.Bucket)})
		}
	}
	mine := head{line: &lane{Line: Line{Bucket: b}}, Waiting: me, rank: rank(q, b, me.Due, at)}
	all := append(heads(q, lanes, at), mine)
	order(q, all)
	return all[:slices.IndexFunc(all, func(h head) bool { return h.ID == me.ID })]
}

// standing is where the task is in the line of its bucket.
func (s *Situation) standing() Waiting {
	me := s.InLine()
	for i := range s.Lines {
		if s.Lines[i].Bucket.Name() != s.Task.Bucket.Name() {
			continue
		}
		for _, w := range s.Lines[i].First {
			if w.ID == me.ID {
				return w
			}
		}
	}
	return me
}

// lineText says how many tasks are before the task, and names the next.
func (c *candidate) lineText(ahead []head, next head) string {
	before, due, queues := int64(0), int64(0), map[string]bool{}
	for i := range c.s.Lines {
		l := &c.s.Lines[i]
		due += l.Due
		before += l.Before
		queues[l.Bucket.QueueName()] = true
	}
	text := fmt.Sprintf("%s before it in queue %s, next task %d (priority %d, effective %d)",
		things(max(before, int64(len(ahead))), "task is", "tasks are"), c.queue.Name, next.ID, next.line.Bucket.Priority, next.rank)
	if len(queues) > 1 {
		text += fmt.Sprintf("; %d are due in %d queues, which take turns", due, len(queues))
	}
	return text
}

// head is the next task of a line, as it competes with those of other lines of
// its queue.
type head struct {
	line *lane
	Waiting
	rank int64
}

// lane is a line that is being taken from.
type lane struct {
	Line
	demand task.Resources
	next   int
}

// rank is the priority raised by what the task has waited.
func rank(q *task.Queue, b task.Bucket, due, at statemachine.Time) int64 {
	r := int64(b.Priority)
	if aging := q.EffectiveAging(); aging > 0 {
		r += int64(at-due) / int64(aging)
	}
	return r
}

// order sorts heads as they are claimed.
func order(q *task.Queue, heads []head) {
	slices.SortFunc(heads, func(x, y head) int {
		older := cmp.Or(cmp.Compare(x.Due, y.Due), cmp.Compare(x.ID, y.ID))
		if q.Order == task.Lifo {
			older = -older
		}
		return cmp.Or(cmp.Compare(y.rank, x.rank), older)
	})
}

// heads are the next tasks of the lanes, in the order in which they are claimed.
func heads(q *task.Queue, lanes []*lane, at statemachine.Time) []head {
	var found []head
	for _, l := range lanes {
		if l.next < len(l.First) {
			w := l.First[l.next]
			found = append(found, head{line: l, Waiting: w, rank: rank(q, l.Bucket, w.Due, at)})
		}
	}
	order(q, found)
	return found
}

// best is the lane whose head is claimed next: the first that finds what it
// demands. Those before it keep what they demand.
func best(q *task.Queue, lanes []*lane, at statemachine.Time, s shelf) *lane {
	kept := map[string]bool{}
	for _, h := range heads(q, lanes, at) {
		if !s.short(h.line.demand, kept) {
			return h.line
		}
		keep(kept, h.line.demand)
	}
	return nil
}

// shelf is what a node has of each resource, and what of it is taken.
type shelf struct {
	offered, used task.Resources
}

// newShelf is that of a worker: what it does not offer does not count.
func newShelf(w *Worker, n *Node) shelf {
	used := maps.Clone(n.Used)
	if used == nil {
		used = task.Resources{}
	}
	return shelf{offered: w.Resources, used: used}
}

// lacks is how much of a resource is missing to give n of it.
func (s shelf) lacks(name string, n int) int { return n - (s.offered[name] - s.used[name]) }

// short reports whether a demand finds too little, or what is kept for others.
func (s shelf) short(demand task.Resources, kept map[string]bool) bool {
	for name, n := range demand {
		if kept[name] || s.lacks(name, n) > 0 {
			return true
		}
	}
	return false
}

func (s shelf) take(demand task.Resources) {
	for name, n := range demand {
		s.used[name] += n
	}
}

// keep notes that nothing of what is demanded is for those behind.
func keep(kept map[string]bool, demand task.Resources) {
	for name := range demand {
		kept[name] = true
	}
}

// demandOf is what the tasks of a bucket ask. What is no resource fits nowhere,
// so it does not matter here.
func demandOf(b task.Bucket) task.Resources {
	fields := b.Fields()
	i := slices.Index(fields, "resources")
	if i < 0 {
		return nil
	}
	demand, err := task.ParseResources(fields[i+1])
	if err != nil {
		return nil
	}
	return demand
}
