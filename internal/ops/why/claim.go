package why

import (
	"maps"
	"math"
	"slices"

	"github.com/tdf-go/tdf/internal/route"
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
	if !w.claims() || s.declined(w) || len(route.Unfit(s.Task.Bucket, s.queue(s.Task.Bucket.QueueName()).Queue, w.Offer)) > 0 {
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
		if len(route.Unfit(l.Bucket, c.queues[name].Queue, w.Offer)) == 0 {
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
func left(l route.Limit, running int64) int64 {
	if l < 0 {
		return math.MaxInt64
	}
	return int64(l) - running
}

// nodeCap is how many rounds the worker lets run on its node.
func nodeCap(w *Worker, n *Node) route.Limit {
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
